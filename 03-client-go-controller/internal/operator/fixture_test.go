package operator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// These tests run the program itself, as a separate process, against local clusters. The program is a user that
// has exactly the permissions of config/rbac. The tests count its requests in the API server's audit log.

const (
	user = "myweb-operator"
	ns   = "default"
)

var (
	chapter = filepath.Join("..", "..")
	crd     = filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml")
	folder  string // of the built program
	program string
)

func TestMain(m *testing.M) {
	flag.Parse()
	crlog.SetLogger(klog.Background()) // of envtest
	if flag.Lookup("test.parallel").Value.String() == flag.Lookup("test.parallel").DefValue {
		_ = flag.Set("test.parallel", "8") // most tests wait most of the time, also on few processors
	}
	os.Exit(testAll(m))
}

// testAll builds the program, runs the tests and removes the files of both.
func testAll(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "myweb-controller-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	testenv.OnInterrupt(func() { os.RemoveAll(folder) })
	program = filepath.Join(folder, "myweb-controller")
	if out, err := exec.Command("go", "build", "-o", program, chapter+"/cmd/myweb-controller").
		CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A fixture is a local cluster of one test, with an administrator's clients.
type fixture struct {
	*gomega.WithT
	t    *testing.T
	cfg  *rest.Config
	kube kubernetes.Interface
	web  versioned.Interface
	// A fixture without controllers has neither.
	local *testenv.Local
	audit *programtest.Audit
}

var starting sync.Mutex // two clusters that start at once may choose the same port

// newFixture starts a local cluster that ends with the test. In a copy of this folder outside the workshop,
// the test is skipped.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	local, err := testenv.StartLocal(crd)
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(); err != nil {
			t.Error(err)
		}
	})
	f := newClients(t, local.Config)
	f.local, f.audit = local, &programtest.Audit{Path: local.AuditLog}
	return f
}

// user makes a user without any permission, and returns the path of its kubeconfig.
func (f *fixture) user(name string) string {
	f.t.Helper()
	path, err := f.local.User(name)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return path
}

// operatorUser makes a user with the shipped permissions.
func (f *fixture) operatorUser(name string) string {
	f.t.Helper()
	f.allow(name, "", shippedRules(f.t))
	f.allow(name, "default", leaseRules(f.t))
	return f.user(name)
}

// allow gives a user exactly these permissions: in a namespace, or everywhere when namespace is empty. They
// replace the earlier permissions of the user there.
func (f *fixture) allow(user, namespace string, rules []rbacv1.PolicyRule) {
	f.t.Helper()
	kind, roles, bindings := "Role", "roles", "rolebindings"
	if namespace == "" {
		kind, roles, bindings = "ClusterRole", "clusterroles", "clusterrolebindings"
	}
	group := rbacv1.SchemeGroupVersion.String()
	name := metav1.ObjectMeta{Name: user}
	f.apply(roles, namespace,
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: group, Kind: kind}, ObjectMeta: name, Rules: rules})
	f.apply(bindings, namespace,
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: group, Kind: kind + "Binding"}, ObjectMeta: name,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: user}})
}

// apply creates or replaces an object of the group rbac.
func (f *fixture) apply(resource, namespace string, obj metav1.Object) {
	f.t.Helper()
	data, err := json.Marshal(obj)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(f.kube.RbacV1().RESTClient().Patch(types.ApplyPatchType).Resource(resource).Namespace(namespace).
		Name(obj.GetName()).
		Param("fieldManager", "test").Body(data).Do(f.t.Context()).Error()).To(gomega.Succeed())
}

// manifest reads an object of the chapter's config folder.
func manifest[T any](t *testing.T, path string) T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chapter, "config", path))
	if err != nil {
		t.Fatal(err)
	}
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(T)
}

func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	return manifest[*rbacv1.ClusterRole](t, "rbac/role.yaml").Rules
}

func leaseRules(t *testing.T) []rbacv1.PolicyRule {
	return manifest[*rbacv1.Role](t, "rbac/leader_election_role.yaml").Rules
}

// create makes a MyWeb without pods, which edit may change first.
func (f *fixture) create(namespace, name string, edit func(*webv1.MyWebSpec)) *webv1.MyWeb {
	f.t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx", Replicas: new(int32(0))}}
	if edit != nil {
		edit(&web.Spec)
	}
	web, err := f.web.OperatorV1().MyWebs(namespace).Create(f.t.Context(), web, metav1.CreateOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return web
}

func (f *fixture) get(namespace, name string) *webv1.MyWeb {
	f.t.Helper()
	web, err := f.web.OperatorV1().MyWebs(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return web
}

// served waits until the current generation of a MyWeb is fully served, and returns it.
func (f *fixture) served(namespace, name string) (web *webv1.MyWeb) {
	f.t.Helper()
	f.Eventually(func() bool { web = f.get(namespace, name); return completed(web) }).
		Should(gomega.BeTrue(), "MyWeb %s/%s is fully served", namespace, name)
	return web
}

func completed(web *webv1.MyWeb) bool {
	return web.Status.Completed && web.Status.ObservedGeneration == web.Generation
}

// newServer starts an API server alone, and also returns the path of an administrator's kubeconfig. The server also
// starts in a copy of this folder outside the workshop. It ends with the test.
func newServer(t *testing.T, crds ...string) (f *fixture, kubeconfig string) {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	cfg := testenv.NewAPIServer(t, crds...)
	return newClients(t, cfg), testenv.WriteKubeconfig(t, cfg, "")
}

// newClients returns a fixture with an administrator's clients for an API server.
func newClients(t *testing.T, cfg *rest.Config) *fixture {
	f := &fixture{WithT: gomega.NewWithT(t), t: t, cfg: cfg, kube: kubernetes.NewForConfigOrDie(cfg),
		web: versioned.NewForConfigOrDie(cfg)}
	f.SetDefaultEventuallyTimeout(60 * time.Second)
	f.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	return f
}
