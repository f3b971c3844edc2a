package env_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/00-env/internal/testenv"
)

// existingCluster is the environment variable that names the kubeconfig of a cluster to test instead
// of a local one. kind.sh sets it.
const existingCluster = "WORKSHOP_KUBECONFIG"

// soon limits how long a test waits for a cluster: a real kubelet may have to fetch an image.
const soon = 90 * time.Second

// The servers start when the first test asks for one, so that a run of few tests stays quick.
var (
	stops      []func() error
	startLocal = sync.OnceValues(func() (*testenv.Local, error) {
		l, err := testenv.StartLocal()
		if err == nil {
			stops = append(stops, l.Stop)
		}
		return l, err
	})
	startAPIServer = sync.OnceValues(func() (*rest.Config, error) {
		env, err := testenv.NewEnvironment()
		if err != nil {
			return nil, err
		}
		stops = append(stops, env.Stop)
		return env.Start()
	})
)

func TestMain(m *testing.M) {
	gomega.SetDefaultEventuallyTimeout(soon)
	gomega.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	code := m.Run()
	var wrong []error
	for _, stop := range stops {
		wrong = append(wrong, stop())
	}
	if err := errors.Join(wrong...); err != nil {
		fmt.Fprintln(os.Stderr, "stop the servers:", err)
		code = 1
	}
	os.Exit(code)
}

// local returns the local cluster of these tests. On an existing cluster, and outside the workshop, the
// test is skipped.
func local(t *testing.T) *testenv.Local {
	t.Helper()
	if path := os.Getenv(existingCluster); path != "" {
		t.Skipf("only true of the local environment, and %s=%s names another cluster", existingCluster, path)
	}
	l, err := startLocal()
	switch {
	case errors.Is(err, testenv.ErrNoRepository):
		t.Skip(err) // this folder was copied: the envtest environment can be had without the workshop, this one cannot
	case err != nil:
		t.Fatal(err)
	}
	return l
}

// cluster returns the administrator's configuration of the cluster under test: the existing cluster that the
// environment variable names, else the local cluster.
func cluster(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv(existingCluster)
	if path == "" {
		return local(t).Config
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	testenv.Must(t, err)
	cfg.QPS = -1 // no limit on the client's side: a test must not wait for itself
	return cfg
}

// envtest returns the administrator's configuration of an API server without controllers.
func envtest(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := startAPIServer()
	testenv.Must(t, err)
	return cfg
}

// newClient returns a client that talks with the given configuration.
func newClient(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	testenv.Must(t, err)
	return c
}

// newNamespace makes a namespace for this test alone and has it deleted at the end.
func newNamespace(t *testing.T, c kubernetes.Interface) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chapter-00-"}}
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	testenv.Must(t, err)
	ctx := context.WithoutCancel(t.Context()) // t.Context() ends before cleanup begins
	t.Cleanup(func() {
		err := c.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}
