package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/internal/testenv"
	"github.com/example/memcached-operator/test/programtest"
)

// These tests run the program as a separate process, on a real API server. It uses a kubeconfig whose user has only
// the roles in config/rbac.

var (
	config  *rest.Config
	crds    = filepath.Join("..", "config", "crd", "bases")
	install sync.Once // installs the CRDs, after the tests that run without them
)

// TestMain makes the test binary the program itself when the tests start it again.
func TestMain(m *testing.M) {
	if os.Getenv("IS_PROGRAM") != "" {
		main()
		return
	}
	if err := os.Setenv("IS_PROGRAM", "yes"); err != nil {
		panic(err)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil }))
}

// kubeconfig writes a kubeconfig for a user, or for the administrator when user is empty, and returns its path.
func kubeconfig(t *testing.T, user string) string {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate.UserName = user
	return testenv.WriteKubeconfig(t, cfg, "")
}

// launch starts the program. An argument that does not begin with -- is an environment variable.
func launch(t *testing.T, args ...string) *programtest.Process {
	t.Helper()
	flags := []string{"--health-probe-bind-address=0"}
	for _, arg := range args {
		if name, value, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") {
			flags = append(flags, arg)
		} else {
			t.Setenv(name, value)
		}
	}
	return programtest.Start(t, os.Args[0], flags...)
}

// A fixture is a client of the administrator, with a new namespace.
type fixture struct {
	*gomega.WithT
	client.Client
	t         *testing.T
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	install.Do(func() {
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}}); err != nil {
			t.Fatal(err)
		}
	})
	f := &fixture{WithT: gomega.NewWithT(t), t: t}
	f.SetDefaultEventuallyTimeout(30 * time.Second)
	f.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	f.Client, err = client.New(config, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "program-"}}
	f.create(namespace)
	f.namespace = namespace.Name
	return f
}

func (f *fixture) create(obj client.Object) {
	f.t.Helper()
	f.Expect(f.Create(f.t.Context(), obj)).To(gomega.Succeed())
}

// allow gives a user the rules of a role in config/rbac, in the test's namespace or everywhere.
func (f *fixture) allow(subject rbacv1.Subject, file string, everywhere bool) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "config", "rbac", file))
	f.Expect(err).NotTo(gomega.HaveOccurred())
	first, _, _ := strings.Cut(strings.TrimPrefix(string(data), "---\n"), "\n---\n")
	role := &rbacv1.ClusterRole{}
	f.Expect(yaml.Unmarshal([]byte(first), role)).To(gomega.Succeed())
	role.ObjectMeta = metav1.ObjectMeta{GenerateName: "program-"}
	role.Kind = "" // one file holds a Role
	f.create(role)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	if everywhere {
		f.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	} else {
		f.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: f.namespace},
			Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	}
}

// operator returns the kubeconfig of a user who may do what the operator may do in the test's namespace.
func (f *fixture) operator() string {
	f.t.Helper()
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "operator-of-" + f.namespace}
	f.allow(user, "role.yaml", false)
	f.allow(user, "leader_election_role.yaml", false)
	f.allow(user, "metrics_auth_role.yaml", true)
	return kubeconfig(f.t, user.Name)
}
