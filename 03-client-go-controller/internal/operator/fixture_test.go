package operator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// These tests run the program itself, as a separate process, on real API servers. The program is a user that has
// exactly the permissions of config/rbac.

const (
	user = "myweb-operator"
	ns   = "default"
)

var (
	chapter = filepath.Join("..", "..")
	crd     = filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml")
	program string
)

func TestMain(m *testing.M) {
	flag.Parse()
	crlog.SetLogger(klog.Background()) // of envtest
	if flag.Lookup("test.parallel").Value.String() == flag.Lookup("test.parallel").DefValue {
		_ = flag.Set("test.parallel", "8") // most tests wait most of the time, also on few processors
	}
	testenv.OnInterrupt(gexec.CleanupBuildArtifacts)
	var err error
	if program, err = gexec.Build(chapter + "/cmd/myweb-controller"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	gexec.CleanupBuildArtifacts()
	os.Exit(code)
}

// A fixture is the API server of one test, with an administrator's clients.
type fixture struct {
	*gomega.WithT
	t    *testing.T
	cfg  *rest.Config
	kube kubernetes.Interface
	web  versioned.Interface
}

var starting sync.Mutex // two servers that start at once may choose the same port

// newFixture starts an API server that ends with the test.
func newFixture(t *testing.T, crds ...string) *fixture {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	cfg := testenv.NewAPIServer(t, crds...)
	f := &fixture{WithT: gomega.NewWithT(t), t: t, cfg: cfg, kube: kubernetes.NewForConfigOrDie(cfg),
		web: versioned.NewForConfigOrDie(cfg)}
	f.SetDefaultEventuallyTimeout(60 * time.Second)
	f.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	return f
}

// operator returns a configuration for a user that has exactly the shipped permissions.
func (f *fixture) operator() *rest.Config {
	f.t.Helper()
	f.allow("", manifest[*rbacv1.ClusterRole](f.t, "rbac/role.yaml").Rules)
	f.allow("default", manifest[*rbacv1.Role](f.t, "rbac/leader_election_role.yaml").Rules)
	cfg := rest.CopyConfig(f.cfg)
	cfg.Impersonate.UserName = user
	return cfg
}

// allow gives the operator's user these permissions: in a namespace, or everywhere when namespace is empty.
func (f *fixture) allow(namespace string, rules []rbacv1.PolicyRule) {
	f.t.Helper()
	name := metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	rbac, ctx, options := f.kube.RbacV1(), f.t.Context(), metav1.CreateOptions{}
	var noRole, noBinding error
	if namespace == "" {
		_, noRole = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, options)
		_, noBinding = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}}, options)
	} else {
		_, noRole = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: rules}, options)
		_, noBinding = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}}, options)
	}
	f.Expect(errors.Join(noRole, noBinding)).NotTo(gomega.HaveOccurred())
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

// reported waits until the status of a MyWeb is that of its current generation.
func (f *fixture) reported(namespace, name string) {
	f.t.Helper()
	f.Eventually(func() bool {
		web := f.get(namespace, name)
		return web.Status.ObservedGeneration == web.Generation
	}).Should(gomega.BeTrue(), "MyWeb %s/%s has a status", namespace, name)
}
