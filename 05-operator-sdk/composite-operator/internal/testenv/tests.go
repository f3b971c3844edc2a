package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Main runs the tests of a package on an API server that they share, and returns the code to exit with. Before the
// first test, prepare gets the administrator's configuration.
func Main(m *testing.M, prepare func(*rest.Config) error, crds ...string) (code int) {
	cfg, stop, err := StartAPIServer(crds...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if err := prepare(cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// NewAPIServer starts an API server that ends with the test, and returns the administrator's configuration.
func NewAPIServer(t *testing.T, crds ...string) *rest.Config {
	t.Helper()
	cfg, stop, err := StartAPIServer(crds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

// WriteKubeconfig writes a kubeconfig that connects as the configuration does, in a namespace, and returns its path.
func WriteKubeconfig(t *testing.T, cfg *rest.Config, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a kubeconfig") // a home folder may have a blank too
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: cfg.Host,
			CertificateAuthority: cfg.CAFile, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {Token: cfg.BearerToken,
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Impersonate: cfg.Impersonate.UserName}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test", Namespace: namespace}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// FreeAddress returns a loopback address that nothing listens on.
func FreeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", FreePort(t))
}

// FreePort returns a port on loopback that nothing listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// NewScheme returns a scheme with the built-in types and more.
func NewScheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// ReadManifest reads the object in a file, which may hold no field that its type does not have.
func ReadManifest[T any](t testing.TB, path ...string) *T {
	t.Helper()
	object := new(T)
	data, err := os.ReadFile(filepath.Join(path...))
	if err == nil {
		err = yaml.UnmarshalStrict(data, object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Run runs a manager until the test ends, or stop is called. It must end without an error.
func Run(t *testing.T, start func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
