package permissions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/image"
	"example.com/operator-workshop/06-deploy/internal/kustomize"
	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
	"example.com/operator-workshop/06-deploy/test/programtest"
)

const config = "../../config"

// A fixture is a local cluster, with the steps of a test in it.
type fixture struct {
	*gomega.WithT
	t      *testing.T
	local  *testenv.Local
	client client.Client
}

var operator = rbacv1.Subject{Namespace: manifests.Name, Name: manifests.Name}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	local, err := testenv.StartLocal(config + "/crd/operator.k8s-summit.org_mywebs.yaml")
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	testenv.Must(t, err)
	ctrl.SetLogger(logr.Discard()) // the client has nothing to say here
	t.Cleanup(func() {
		if err := local.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &fixture{WithT: gomega.NewWithT(t), t: t, local: local}
	w.SetDefaultEventuallyTimeout(60 * time.Second)
	w.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	w.client, err = client.New(local.Config, client.Options{})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "websites"}})).
		To(gomega.Succeed())
	return w
}

// The operators run as their ServiceAccount, with the roles of the manifests and the flags of the Deployment, on
// a complete control plane. Their requests in the audit log use every permission, and none was denied.
//
// The roles of the webhooks' certificate are left to kind: only in a cluster does the operator keep a certificate.
func TestTheOperatorsUseAllThatTheyMayDoAndNoMore(t *testing.T) {
	w := newFixture(t)
	for _, way := range []string{"03/default", "04/default", "04/namespaced", "04/monitoring"} {
		all, err := kustomize.Build(filepath.Join(config, way))
		w.Expect(err).NotTo(gomega.HaveOccurred())
		w.t.Run(way, func(t *testing.T) {
			w := &fixture{WithT: gomega.NewWithT(t), t: t, local: w.local, client: w.client}
			w.SetDefaultEventuallyTimeout(60 * time.Second)
			all = w.deploy(all)
			granted, err := Granted(all, operator)
			w.Expect(err).NotTo(gomega.HaveOccurred())
			begin := w.logged()
			w.live(strings.Split(way, "/")[0], all)
			// Where the API server does not stream lists, an informer needs the verb list.
			t.Setenv("KUBE_FEATURE_WatchListClient", "false")
			w.live(strings.Split(way, "/")[0], all)
			requests, err := ReadAudit(bytes.NewReader(w.audit()[begin:]), "system:serviceaccount:myweb-operator:myweb-operator")
			w.Expect(err).NotTo(gomega.HaveOccurred())
			var out bytes.Buffer
			if err := Compare(granted, requests).Report(&out); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
			t.Log(strings.TrimSpace(out.String()))
			more := append(granted, Permission{Verb: "update", Resource: "configmaps", Role: "none"})
			if v := Compare(more, requests); len(v.Unused) != 1 {
				t.Errorf("one permission too many, and %v is found: the comparison shows nothing", v.Unused)
			}
		})
	}
}

func (w *fixture) audit() []byte {
	w.t.Helper()
	data, err := os.ReadFile(w.local.AuditLog)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	return data
}

// logged returns the length of the audit log, up to its last whole line.
func (w *fixture) logged() int { return bytes.LastIndexByte(w.audit(), '\n') + 1 }

// deploy applies all objects except the Deployment, whose program runs here, and objects of kinds that this cluster
// does not have. It deletes them when the test ends, except the namespace.
func (w *fixture) deploy(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	w.t.Helper()
	for _, object := range all {
		if slices.Contains([]string{"Deployment", "ServiceMonitor", "PrometheusRule"}, object.GetKind()) {
			continue
		}
		err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner("test"), client.ForceOwnership)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		if object.GetKind() != "Namespace" {
			w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), object.DeepCopy()) })
		}
	}
	// of an earlier run
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: manifests.Name, Name: manifests.Name}}
	w.Expect(client.IgnoreNotFound(w.client.Delete(w.t.Context(), lease))).To(gomega.Succeed())
	w.Eventually(func() bool {
		return w.may(operator, "watch", "mywebs", "websites")
	}).Should(gomega.BeTrue(), "the roles took effect")
	return all
}

// may reports whether an account, or a user when it has no namespace, may do something with MyWebs.
func (w *fixture) may(who rbacv1.Subject, verb, resource, namespace string) bool {
	w.t.Helper()
	user := who.Name
	if who.Namespace != "" {
		user = "system:serviceaccount:" + who.Namespace + ":" + who.Name
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: "operator.k8s-summit.org", Resource: resource, Subresource: subresource}}}
	w.Expect(w.client.Create(w.t.Context(), review)).To(gomega.Succeed())
	return review.Status.Allowed
}

// live runs the operator through the life of a MyWeb: made, changed behind its back, changed, deleted.
func (w *fixture) live(impl string, all []*unstructured.Unstructured) {
	w.t.Helper()
	source := image.Sources[impl]
	program, err := gexec.Build(source.Package, "-C", filepath.Join("..", "..", "..", source.Chapter))
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.t.Cleanup(gexec.CleanupBuildArtifacts)
	args, metrics := w.flags(all)
	p := programtest.Start(w.t, program, append(args, "--kubeconfig="+w.kubeconfig())...)
	defer p.Terminate()
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
		"metadata": map[string]any{"namespace": "websites", "name": "site"}, "spec": map[string]any{"image": "nginx"}}}
	w.Expect(w.client.Create(w.t.Context(), web)).To(gomega.Succeed())
	w.Eventually(w.completed).Should(gomega.BeTrue(), "the MyWeb is served")
	for _, step := range []string{
		`{"spec":{"pageContentHtml":"other"}}`,
		`{"spec":{"replicas":2,"image":"nginx:1.29-alpine"}}`, // the Deployment
		`{"spec":{"nodePortNumber":30111}}`,                   // the Service
	} {
		w.Expect(w.client.Patch(w.t.Context(), web, client.RawPatch("application/merge-patch+json", []byte(step)))).
			To(gomega.Succeed())
		w.Eventually(w.completed).Should(gomega.BeTrue(), "the changed MyWeb is served: %s", step)
	}
	if metrics != "" {
		w.Eventually(func() int {
			return scrape(metrics, w.token("myweb-operator-scraper"))
		}).Should(gomega.Equal(http.StatusOK))
		w.Expect(scrape(metrics, "")).To(gomega.Equal(http.StatusUnauthorized))
		w.Expect(scrape(metrics, w.token("myweb-operator"))).To(gomega.Equal(http.StatusForbidden))
	}
	w.Expect(w.client.Delete(w.t.Context(), web)).To(gomega.Succeed())
	w.Eventually(func() bool {
		services := &corev1.ServiceList{}
		w.Expect(w.client.List(w.t.Context(), services, client.InNamespace("websites"))).To(gomega.Succeed())
		return len(services.Items) == 0
	}).Should(gomega.BeTrue(), "the children of a deleted MyWeb are gone")
}

func (w *fixture) completed() bool {
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("operator.k8s-summit.org/v1")
	web.SetKind("MyWeb")
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "websites", Name: "site"}, web)).To(gomega.Succeed())
	completed, _, _ := unstructured.NestedBool(web.Object, "status", "completed")
	observed, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
	return completed && observed == web.GetGeneration()
}

// flags are the Deployment's, with addresses of this machine.
func (w *fixture) flags(all []*unstructured.Unstructured) (args []string, metrics string) {
	w.t.Helper()
	for _, object := range all {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		w.Expect(err).NotTo(gomega.HaveOccurred())
		args, _, err = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		w.Expect(err).NotTo(gomega.HaveOccurred())
	}
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "--health-probe"):
			args[i] = "--health-probe-bind-address=0"
		case strings.HasPrefix(arg, "--metrics-bind"):
			metrics = fmt.Sprint("127.0.0.1:", testenv.FreePort(w.t))
			args[i] = "--metrics-bind-address=" + metrics
		}
	}
	w.Expect(args).NotTo(gomega.BeEmpty())
	return append(args, "--leader-election-namespace=myweb-operator"), metrics
}

// kubeconfig has the token of the operator's ServiceAccount.
func (w *fixture) kubeconfig() (path string) {
	w.t.Helper()
	cfg := rest.AnonymousClientConfig(w.local.Config)
	cfg.BearerToken = w.token("myweb-operator")
	return testenv.WriteKubeconfig(w.t, cfg, "")
}

func (w *fixture) token(account string) string {
	w.t.Helper()
	asked := &authenticationv1.TokenRequest{}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myweb-operator", Name: account}}
	w.Expect(w.client.SubResource("token").Create(w.t.Context(), who, asked)).To(gomega.Succeed())
	return asked.Status.Token
}

// scrape asks for metrics over TLS and returns the status code, 0 when there is no answer.
func scrape(address, token string) int {
	code, _ := programtest.Get("https://"+address+"/metrics", token)
	return code
}

// A user who may view, edit or administer a namespace may do so with its MyWebs: the controller manager aggregates our
// roles to the default roles of a cluster.
func TestPeoplesRolesAreAddedToTheBuiltInOnes(t *testing.T) {
	w := newFixture(t)
	all, err := kustomize.Build(filepath.Join(config, "04/default"))
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.deploy(all)
	may := map[string][]string{
		"view": {"get mywebs", "list mywebs", "watch mywebs", "get mywebs/scale", "get mywebs/status"},
		"edit": {"get mywebs", "get mywebs/status", "create mywebs", "update mywebs", "patch mywebs", "delete mywebs",
			"update mywebs/scale"},
		"admin": {"get mywebs", "create mywebs", "delete mywebs", "deletecollection mywebs", "patch mywebs/scale"},
	}
	never := map[string][]string{
		"view":  {"create mywebs", "patch mywebs", "delete mywebs", "update mywebs/scale", "update mywebs/status"},
		"edit":  {"deletecollection mywebs", "update mywebs/status", "patch mywebs/status"},
		"admin": {"update mywebs/status"},
	}
	for role := range may {
		who := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: role + "-user"}
		w.Expect(w.client.Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "websites", Name: role},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{who}})).To(gomega.Succeed())
		for _, what := range may[role] {
			verb, resource, _ := strings.Cut(what, " ")
			w.Eventually(func() bool {
				return w.may(who, verb, resource, "websites")
			}).Should(gomega.BeTrue(), "%s may %s", role, what)
		}
		for _, what := range never[role] {
			verb, resource, _ := strings.Cut(what, " ")
			if w.may(who, verb, resource, "websites") {
				t.Errorf("%s may %s", role, what)
			}
		}
		if w.may(who, "get", "mywebs", "default") {
			t.Errorf("%s of one namespace may read in another", role)
		}
	}
}

// The command says the same of a file.
func TestTheCommand(t *testing.T) {
	folder := t.TempDir()
	log, manifest := filepath.Join(folder, "audit.log"), filepath.Join(folder, "all.yaml")
	for path, text := range map[string]string{
		log: line("patch", "", "configmaps", "web", "a", 201, "allow"), manifest: small} {
		testenv.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	run := func(args ...string) (string, error) {
		in, err := os.Open(manifest)
		testenv.Must(t, err)
		defer in.Close()
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "../../cmd/permissions"}, args...)...)
		cmd.Stdin = in
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"not all used": {[]string{"--audit-log=" + log, "--account=home/me"}, "permissions: 2 permissions were not used"},
		"no log":       {nil, "give --audit-log FILE"},
		"no account":   {[]string{"--audit-log=/nowhere"}, "grant the account myweb-operator/myweb-operator nothing"},
		"no such log":  {[]string{"--audit-log=/nowhere", "--account=home/me"}, "on kind it lies on the node"},
	} {
		out, err := run(test.args...)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("%s: %v, got %q, want %q", name, err, out, test.want)
		}
	}
}
