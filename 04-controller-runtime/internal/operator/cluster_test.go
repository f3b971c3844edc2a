package operator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// These tests run the program itself, as a separate process, on an API server that they share. Each process has its own
// user, with exactly the permissions of config/rbac.

var (
	chapter   = filepath.Join("..", "..")
	apiserver *rest.Config
	program   string // the operator
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	testenv.OnInterrupt(gexec.CleanupBuildArtifacts)
	code := testenv.Main(m, func(cfg *rest.Config) (err error) {
		apiserver = cfg
		program, err = gexec.Build(chapter + "/cmd/myweb-operator")
		return err
	}, filepath.Join(chapter, "config", "crd"))
	gexec.CleanupBuildArtifacts()
	os.Exit(code)
}

// A cluster is the administrator's client of the API server.
type cluster struct {
	*gomega.WithT
	client.Client
	t *testing.T
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	w := &cluster{t: t, WithT: gomega.NewWithT(t)}
	w.SetDefaultEventuallyTimeout(60 * time.Second)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	var err error
	w.Client, err = client.New(apiserver, client.Options{})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	return w
}

// operator makes a user with the shipped permissions: everywhere, or in some namespaces only.
func (w *cluster) operator(user string, namespaces ...string) (kubeconfig string) {
	w.t.Helper()
	if len(namespaces) == 0 {
		w.allow(user, "", shippedRules(w.t))
	}
	for _, namespace := range namespaces {
		w.allow(user, namespace, shippedRules(w.t))
	}
	return w.user(user)
}

// user makes a user without any permission, and returns the path of its kubeconfig.
func (w *cluster) user(name string) string {
	w.t.Helper()
	cfg := rest.CopyConfig(apiserver)
	cfg.Impersonate.UserName = name
	return testenv.WriteKubeconfig(w.t, cfg, "")
}

// allow gives a user these permissions, in a namespace, or everywhere when that is empty. They end with the
// test.
func (w *cluster) allow(user, namespace string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, GenerateName: user + "-"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	if namespace == "" {
		role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}
		w.create(role)
		w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}})
		return
	}
	role := &rbacv1.Role{ObjectMeta: name, Rules: rules}
	w.create(role)
	w.create(&rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
}

// create creates an object.
func (w *cluster) create(obj client.Object) {
	w.t.Helper()
	w.Expect(w.Create(w.t.Context(), obj)).To(gomega.Succeed())
}

// manifest reads an object of the chapter's config folder.
func manifest[T any](t *testing.T, path string) T {
	t.Helper()
	return *testenv.ReadManifest[T](t, chapter, "config", path)
}

func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	return manifest[rbacv1.ClusterRole](t, "rbac/role.yaml").Rules
}

func leaseRules(t *testing.T) []rbacv1.PolicyRule {
	return manifest[rbacv1.Role](t, "rbac/leader_election_role.yaml").Rules
}

// namespace makes a namespace.
func (w *cluster) namespace() string {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	w.create(namespace)
	return namespace.Name
}

// ask makes a MyWeb with the given changes.
func (w *cluster) ask(namespace, name string, change ...func(*webv1.MyWebSpec)) *webv1.MyWeb {
	w.t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	for _, f := range change {
		f(&web.Spec)
	}
	w.create(web)
	return web
}

// get reads an object; ok is false when there is none.
func (w *cluster) get(namespace, name string, obj client.Object) (ok bool) {
	w.t.Helper()
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	w.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	return err == nil
}

func (w *cluster) web(namespace, name string) *webv1.MyWeb {
	w.t.Helper()
	web := &webv1.MyWeb{}
	w.Expect(w.get(namespace, name, web)).To(gomega.BeTrue(), "MyWeb %s/%s", namespace, name)
	return web
}

// served acts as the Deployment controller, which this API server lacks, until the current generation of a MyWeb is
// fully served, and returns the MyWeb.
func (w *cluster) served(namespace, name string) (web *webv1.MyWeb) {
	w.t.Helper()
	w.Eventually(func() bool {
		if d := (&appsv1.Deployment{}); w.get(namespace, name, d) {
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
				ReadyReplicas: n, AvailableReplicas: n}
			_ = w.Status().Update(w.t.Context(), d) // a conflict is tried again
		}
		web = w.web(namespace, name)
		return web.Status.Completed && web.Status.ObservedGeneration == web.Generation
	}).Should(gomega.BeTrue(), "MyWeb %s/%s is fully served", namespace, name)
	return web
}

// degraded returns a function that returns "status reason" of a MyWeb's condition Degraded.
func (w *cluster) degraded(namespace, name string) func() string {
	return func() string {
		for _, c := range w.web(namespace, name).Status.Conditions {
			if c.Type == owned.Degraded {
				return string(c.Status) + " " + c.Reason
			}
		}
		return "none"
	}
}

// events returns the events of a MyWeb, as "type reason", oldest first.
func (w *cluster) events(namespace, name string) (all []string) {
	w.t.Helper()
	var list eventsv1.EventList
	w.Expect(w.List(w.t.Context(), &list, client.InNamespace(namespace))).To(gomega.Succeed())
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, e := range list.Items {
		if e.Regarding.Kind == "MyWeb" && e.Regarding.Name == name {
			all = append(all, e.Type+" "+e.Reason)
		}
	}
	return all
}

// launch starts the program as the user of a kubeconfig.
func launch(t *testing.T, kubeconfig string, flags ...string) *programtest.Process {
	t.Helper()
	return programtest.Start(t, program,
		append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0"}, flags...)...)
}

// started launches the program and waits until it works.
func started(t *testing.T, kubeconfig string, flags ...string) *programtest.Process {
	t.Helper()
	p := launch(t, kubeconfig, flags...)
	p.EventuallyPrints("Starting workers", "1m")
	return p
}
