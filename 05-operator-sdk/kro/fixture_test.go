package kro_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
	"example.com/operator-workshop/05-operator-sdk/kro/test/programtest"
)

const user = "kro" // of the API server, with the permissions of config/rbac/role.yaml

var (
	server     client.Client // as administrator
	program    string        // kro
	kubeconfig string        // of the user
	auditLog   string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kro")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := run(m, dir)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds kro and starts an API server, which keeps an audit log, for all tests.
func run(m *testing.M, dir string) (code int, err error) {
	program = filepath.Join(dir, "kro")
	build := exec.Command("go", "build", "-o", program, "github.com/kubernetes-sigs/kro/cmd/controller")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build kro: %w\n%s", err, out)
	}
	env, err := testenv.NewEnvironment("config/crd")
	if err != nil {
		return 1, err
	}
	policy, err := filepath.Abs("testdata/audit-policy.yaml")
	if err != nil {
		return 1, err
	}
	auditLog = filepath.Join(dir, "audit.log")
	env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
	defer func() { err = errors.Join(err, env.Stop()) }()
	cfg, err := env.Start()
	if err != nil {
		return 1, err
	}
	if server, err = client.New(cfg, client.Options{}); err != nil {
		return 1, err
	}
	account, err := env.AddUser(envtest.User{Name: user}, nil)
	if err != nil {
		return 1, err
	}
	data, err := account.KubeConfig()
	if err != nil {
		return 1, err
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startKro starts kro with only its role. It keeps one revision of a graph.
func startKro(t *testing.T) *programtest.Process {
	t.Helper()
	role := testenv.ReadManifest[rbacv1.ClusterRole](t, "config/rbac/role.yaml")
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}})
	t.Setenv("KUBECONFIG", kubeconfig)
	return programtest.Start(t, program, "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--rgd-max-graph-revisions=1", "--zap-encoder=json", "--zap-log-level=info")
}

// create creates an object.
func create(t *testing.T, obj client.Object) {
	t.Helper()
	testenv.Must(t, server.Create(t.Context(), obj))
}

// eventually waits until the check succeeds.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check, "60s", "100ms").Should(gomega.Succeed())
}

// get reads an object of the namespace default.
func get[T client.Object](t *testing.T, obj T, name string) (T, error) {
	return obj, server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj)
}

// status returns a field of the status of an object.
func status[T any](obj *unstructured.Unstructured, field string) (value T) {
	found, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", field)
	value, _ = found.(T)
	return value
}

// condition returns "status reason: message" of a condition.
func condition(obj *unstructured.Unstructured, kind string) string {
	for _, entry := range status[[]any](obj, "conditions") {
		if c, ok := entry.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])
		}
	}
	return "there is none"
}

// of returns an empty object of a kind.
func of(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
