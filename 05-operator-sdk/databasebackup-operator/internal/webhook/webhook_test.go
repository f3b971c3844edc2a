package webhook

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

var (
	apiserver *rest.Config
	scheme    = runtime.NewScheme()
	admin     client.Client
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(databasesv1.AddToScheme(scheme))
	cfg, stop, err := testenv.StartAPIServer("../../config/crd/bases")
	if err == nil {
		apiserver = cfg
		admin, err = client.New(cfg, client.Options{Scheme: scheme})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port on loopback that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestWhetherWebhooksAreServed(t *testing.T) {
	for name, test := range map[string]struct {
		environment, certPath string
		enabled               bool
		wrong                 string
	}{
		"outside a cluster":               {"", "", false, ""},
		"with a certificate":              {"", "/certs", true, ""},
		"with a certificate, but off":     {"false", "/certs", false, ""},
		"on, with a certificate":          {"true", "/certs", true, ""},
		"on, outside, without":            {"true", "", false, "outside a cluster webhooks need --webhook-cert-path"},
		"a word that is no truth":         {"perhaps", "", false, `ENABLE_WEBHOOKS is "perhaps"`},
		"off, as somebody might write it": {"FALSE", "/certs", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ENABLE_WEBHOOKS", test.environment)
			hooks, err := New(Options{Port: freePort(t), CertPath: test.certPath})
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Fatalf("got %v, want %q", err, test.wrong)
			}
			if err == nil && (hooks.Enabled() != test.enabled || (hooks.Server() == nil) == test.enabled) {
				t.Errorf("served: %v", hooks.Enabled())
			}
		})
	}
}
