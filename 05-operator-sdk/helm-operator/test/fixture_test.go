// Package test runs helm-operator with the chart, as a separate process, on a real API server. Its user has only the
// roles in config/rbac.
package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/helm-operator/internal/testenv"
)

// program is the package that `make build` compiles. It is not part of the workshop.
const program = "github.com/operator-framework/helm-operator-plugins"

// user is the name of the operator at the API server.
const user = "helm-operator"

var (
	config *rest.Config
	binary string
	crd    = filepath.Join("..", "config", "crd", "bases")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	folder, err := os.MkdirTemp("", "helm-operator-")
	if err != nil {
		panic(err)
	}
	testenv.OnInterrupt(func() { _ = os.RemoveAll(folder) }) // the process ends, and the folder is temporary
	binary = filepath.Join(folder, "helm-operator")
	code := testenv.Main(m, func(cfg *rest.Config) error {
		config = cfg
		build := exec.Command("go", "build", "-o", binary, program)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		return build.Run()
	}, crd)
	_ = os.RemoveAll(folder) // it is temporary, and the result is that of the tests
	os.Exit(code)
}

// A fixture is a namespace in which the operator works, and the administrator's view of it.
type fixture struct {
	*gomega.WithT
	client.Client
	t         *testing.T
	namespace string
	output    *gbytes.Buffer
}

// newFixture starts the operator for a new namespace. The operator reconciles when an object changes, and not because
// time has passed.
func newFixture(t *testing.T, cfg *rest.Config) *fixture {
	t.Helper()
	f := &fixture{WithT: gomega.NewWithT(t), t: t, output: gbytes.NewBuffer()}
	f.SetDefaultEventuallyTimeout(30 * time.Second)
	var err error
	f.Client, err = client.New(cfg, client.Options{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "helm-"}}
	f.Expect(f.Create(t.Context(), namespace)).To(gomega.Succeed())
	f.namespace = namespace.Name
	f.grant()

	as := rest.CopyConfig(cfg)
	as.Impersonate.UserName = user
	cmd := exec.Command(binary, "run", "--reconcile-period=1h", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--zap-stacktrace-level=panic")
	cmd.Dir, cmd.Stdout, cmd.Stderr = "..", f.output, f.output
	cmd.Env = append(os.Environ(), "WATCH_NAMESPACE="+f.namespace,
		"KUBECONFIG="+testenv.WriteKubeconfig(t, as, f.namespace))
	f.Expect(cmd.Start()).To(gomega.Succeed())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if f.logged("forbidden") {
			t.Error("the roles in config/rbac lack a permission")
		}
		if lines := strings.Split(string(f.output.Contents()), "\n"); t.Failed() {
			t.Log(strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
	return f
}

// logged reports whether a regular expression matches the log of the operator.
func (f *fixture) logged(pattern string) bool {
	return regexp.MustCompile(pattern).Match(f.output.Contents())
}

// grant gives the operator's user its role, once for an API server.
func (f *fixture) grant() {
	role := testenv.ReadManifest[rbacv1.ClusterRole](f.t, "..", "config", "rbac", "role.yaml")
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}
	for _, object := range []client.Object{role, binding} {
		f.Expect(client.IgnoreAlreadyExists(f.Create(f.t.Context(), object))).To(gomega.Succeed())
	}
}

// newMyWeb creates the sample with another name and spec.
func (f *fixture) newMyWeb(name string, spec map[string]any) *unstructured.Unstructured {
	web := testenv.ReadManifest[unstructured.Unstructured](f.t, "..", "config", "samples", "operator_v1_myweb.yaml")
	web.SetName(name)
	web.SetNamespace(f.namespace)
	web.Object["spec"] = spec
	f.Expect(f.Create(f.t.Context(), web)).To(gomega.Succeed())
	return web
}

// get reads an object of the namespace.
func get[T client.Object](f *fixture, object T, name string) (T, error) {
	return object, f.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object)
}

// condition returns a function that reads a condition of a MyWeb, as "status reason: message".
func (f *fixture) condition(web *unstructured.Unstructured, kind string) func() (string, error) {
	return func() (string, error) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(web.GroupVersionKind())
		if _, err := get(f, live, web.GetName()); err != nil {
			return "", err
		}
		conditions, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == kind {
				return fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"]), err
			}
		}
		return "", err
	}
}
