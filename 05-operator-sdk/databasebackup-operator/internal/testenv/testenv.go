// Package testenv gives the tests of a chapter real servers: a kube-apiserver with its etcd, or a
// whole local cluster.
//
// Each file of the package is copied to every chapter that needs it, so that each chapter is independent.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ErrNoRepository is returned when a chapter was copied away from the workshop and no environment variable
// names the folder of the servers.
var ErrNoRepository = errors.New("this folder lies outside the workshop repository: " +
	"set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl, " +
	"or WORKSHOP_ROOT to a checkout of the workshop")

// Assets returns the folder that holds kube-apiserver, etcd and kubectl: KUBEBUILDER_ASSETS when
// that is set, else bin/ of the repository around this folder. Programs that bin/ lacks are built first; to build
// all of them takes some minutes, and the progress goes to stderr.
func Assets() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	build := exec.Command("make", "--no-print-directory", "-C", root, "tools-envtest")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the test servers in %s: %w", root, err)
	}
	return filepath.Join(root, "bin"), nil
}

// Root returns the folder of the workshop repository: WORKSHOP_ROOT when that is set, else the nearest parent
// folder that has the repository. Without either it returns ErrNoRepository.
func Root() (string, error) {
	if root := os.Getenv("WORKSHOP_ROOT"); root != "" {
		return root, nil
	}
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "tools", "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, ErrNoRepository)
}

// An Environment is an API server whose etcd only this user can read and write: it listens on sockets in a private
// folder. The etcd of a plain envtest.Environment listens on a port, without TLS, for each user of the machine.
type Environment struct {
	envtest.Environment
	sockets string
}

// NewEnvironment returns an API server with the CRDs found at the given paths, to be started and stopped. Ctrl-C stops
// it, too.
func NewEnvironment(crds ...string) (*Environment, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	env := &Environment{Environment: envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     crds,
		ErrorIfCRDPathMissing: true,
		// Never the cluster of KUBECONFIG, whatever USE_EXISTING_CLUSTER says.
		UseExistingCluster:       new(false),
		ControlPlaneStartTimeout: 5 * time.Minute, // of a busy machine: after the usual 20 s all would begin again
	}}
	// Without a given address kube-apiserver looks for the default route, and ends on a machine that has no
	// network. A loopback address cannot be an endpoint of the Service "kubernetes", which no test needs.
	// The plugin is OpenShift's: a user who sets an owner reference on an existing object needs delete on it.
	env.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", "127.0.0.1").
		Set("endpoint-reconciler-type", "none").
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if err := env.hideEtcd(); err != nil {
		return nil, err
	}
	OnInterrupt(func() { _ = env.Stop() })
	return env, nil
}

// hideEtcd replaces the ports of etcd. Only the port for its health is left, which envtest asks.
func (e *Environment) hideEtcd() (err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	health := &url.URL{Scheme: "http", Host: free.Addr().String()}
	if err := free.Close(); err != nil {
		return err
	}
	if e.sockets, err = os.MkdirTemp("", "etcd-"); err != nil { // mode 0700
		return err
	}
	client := "unix://" + filepath.Join(e.sockets, "client")
	e.ControlPlane.Etcd = &envtest.Etcd{URL: health}
	e.ControlPlane.Etcd.Configure().
		Set("listen-client-urls", client).
		Set("advertise-client-urls", client).
		Set("listen-peer-urls", "unix://"+filepath.Join(e.sockets, "peer")).
		Set("listen-metrics-urls", health.String())
	e.ControlPlane.GetAPIServer().Configure().Set("etcd-servers", client)
	return nil
}

// Stop ends the servers, and removes their files.
func (e *Environment) Stop() error {
	return errors.Join(e.Environment.Stop(), os.RemoveAll(e.sockets))
}

// Main runs the tests of a package on an API server that they share, and returns the code to exit with. Before the
// first test, prepare gets the administrator's configuration.
func Main(m *testing.M, prepare func(*rest.Config) error, crds ...string) (code int) {
	env, err := NewEnvironment(crds...)
	if err == nil {
		defer func() { _ = env.Stop() }() // kills the servers when they do not end
		_, err = env.Start()
	}
	if err == nil {
		err = prepare(env.Config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// NewAPIServer starts an API server that ends with the test, and returns the administrator's configuration.
func NewAPIServer(t *testing.T, crds ...string) *rest.Config {
	t.Helper()
	env, err := NewEnvironment(crds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	return env.Config
}

var cleanups sync.WaitGroup

// OnInterrupt registers a cleanup for a test that Ctrl-C or SIGTERM ends: the servers are in their own process
// groups and would live on.
func OnInterrupt(cleanup func()) {
	cleanups.Add(1)
	interrupted, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(interrupted, func() {
		cleanup()
		cleanups.Done()
		cleanups.Wait()
		os.Exit(130)
	})
}

// Must ends a test at an error of a step that the test does not examine.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
