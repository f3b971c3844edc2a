package operator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// These tests run the program itself, as a separate process, against a local cluster that they share. Each process has
// its own user, with exactly the permissions of config/rbac. The tests count its requests in the API server's audit
// log.

var (
	chapter = filepath.Join("..", "..")
	scheme  = runtime.NewScheme()
	folder  string // of built programs
	program string // the operator, once it is built
	shared  *cluster
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	code := m.Run()
	if shared != nil {
		if err := shared.local.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

// A cluster is a local cluster with its administrator's client.
type cluster struct {
	*gomega.WithT
	client.WithWatch
	t     *testing.T
	local *testenv.Local
	audit *programtest.Audit
}

// newCluster returns the local cluster of these tests, which the first test starts, and builds the program. In a copy
// of this folder outside the workshop, the test is skipped.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if shared == nil {
		local, err := testenv.StartLocal(filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml"))
		if errors.Is(err, testenv.ErrNoRepository) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		shared = &cluster{local: local, audit: &programtest.Audit{Path: local.AuditLog}}
		if shared.WithWatch, err = client.NewWithWatch(local.Config, client.Options{Scheme: scheme}); err != nil {
			t.Fatal(err)
		}
		program = build(t, chapter, "myweb-operator")
	}
	w := *shared
	w.t, w.WithT = t, gomega.NewWithT(t)
	w.SetDefaultEventuallyTimeout(60 * time.Second)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	return &w
}

// build compiles cmd/name of a chapter and returns the path of the program.
func build(t *testing.T, chapter, name string) string {
	t.Helper()
	var err error
	if folder == "" {
		if folder, err = os.MkdirTemp("", "myweb-operator-"); err != nil {
			t.Fatal(err)
		}
		testenv.OnInterrupt(func() { os.RemoveAll(folder) })
	}
	path := filepath.Join(folder, name)
	cmd := exec.Command("go", "build", "-o", path, "./cmd/"+name)
	cmd.Dir = chapter
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s in %s: %v\n%s", name, chapter, err, out)
	}
	return path
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
	path, err := w.local.User(name)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	return path
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

// change changes the spec of a MyWeb.
func (w *cluster) change(namespace, name string, change func(*webv1.MyWebSpec)) {
	w.t.Helper()
	w.Eventually(func() error {
		web := w.web(namespace, name)
		change(&web.Spec)
		return w.Update(w.t.Context(), web)
	}).Should(gomega.Succeed())
}

// remove deletes a MyWeb and waits until its children are gone.
func (w *cluster) remove(namespace, name string) {
	w.t.Helper()
	w.Expect(w.Delete(w.t.Context(), w.web(namespace, name))).To(gomega.Succeed())
	w.Eventually(func() int {
		return len(w.children(namespace, name))
	}).Should(gomega.BeZero(), "children of a deleted MyWeb")
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

// children returns the existing objects with the name of a MyWeb, by kind.
func (w *cluster) children(namespace, name string) map[string]client.Object {
	w.t.Helper()
	all := map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Deployment": &appsv1.Deployment{},
		"Service": &corev1.Service{}}
	for kind, obj := range all {
		if !w.get(namespace, name, obj) {
			delete(all, kind)
		}
	}
	return all
}

// served waits until the current generation of a MyWeb is fully served, and returns it.
func (w *cluster) served(namespace, name string) (web *webv1.MyWeb) {
	w.t.Helper()
	w.Eventually(func() bool { web = w.web(namespace, name); return completed(web) }).
		Should(gomega.BeTrue(), "MyWeb %s/%s is fully served", namespace, name)
	return web
}

func completed(web *webv1.MyWeb) bool {
	return web.Status.Completed && web.Status.ObservedGeneration == web.Generation
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
	for _, e := range w.eventObjects(namespace, name) {
		all = append(all, e.Type+" "+e.Reason)
	}
	return all
}

func (w *cluster) eventObjects(namespace, name string) []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	w.Expect(w.List(w.t.Context(), &list, client.InNamespace(namespace))).To(gomega.Succeed())
	list.Items = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != "MyWeb" || e.Regarding.Name != name
	})
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items
}

// settled returns the requests of a user, without leases, once no new request comes.
func (w *cluster) settled(user string) []programtest.Request {
	w.t.Helper()
	return w.audit.Settled(w.t, user)
}

// launch starts a program as the user of a kubeconfig.
func launch(t *testing.T, program, kubeconfig string, flags ...string) *programtest.Process {
	t.Helper()
	return programtest.Start(t, program,
		append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0"}, flags...)...)
}

// started launches a program and waits until it works.
func started(t *testing.T, program, kubeconfig string, flags ...string) *programtest.Process {
	t.Helper()
	p := launch(t, program, kubeconfig, flags...)
	p.EventuallyPrints("Starting workers", "30s")
	return p
}
