package testenv

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
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
