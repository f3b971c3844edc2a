package webhook

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/memcached-operator/internal/testenv"
	"github.com/example/memcached-operator/internal/webhookserver"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhetherWebhooksAreServed(t *testing.T) {
	for name, test := range map[string]struct {
		environment, certPath string
		enabled               bool
		wrong                 string
	}{
		"outside a cluster":           {"", "", false, ""},
		"with a certificate":          {"", "/certs", true, ""},
		"with a certificate, but off": {"false", "/certs", false, ""},
		"on, with a certificate":      {"true", "/certs", true, ""},
		"on, outside, without":        {"true", "", false, "outside a cluster webhooks need --webhook-cert-path"},
		"neither true nor false":      {"perhaps", "", false, `ENABLE_WEBHOOKS is "perhaps"`},
		"off, in capitals":            {"FALSE", "/certs", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ENABLE_WEBHOOKS", test.environment)
			hooks, err := New(Options{Port: testenv.FreePort(t), CertPath: test.certPath})
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Fatalf("got %v, want %q", err, test.wrong)
			}
			if err == nil && (hooks.Enabled() != test.enabled || (hooks.Server() == nil) == test.enabled) {
				t.Errorf("served: %v", hooks.Enabled())
			}
		})
	}
}

func TestWithoutItsSecretItSaysWhatToDo(t *testing.T) {
	s, err := webhookserver.New(webhook.Options{Host: "127.0.0.1", Port: testenv.FreePort(t)})
	must(t, err)
	nobody := &rest.Config{Host: "https://127.0.0.1:1"}
	mgr, err := ctrl.NewManager(nobody, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	err = (&Webhooks{server: s}).rotate(mgr, "default")
	if err == nil || !strings.Contains(err.Error(), "default/"+secretName) ||
		!strings.Contains(err.Error(), "make deploy") {
		t.Errorf("got %v", err)
	}
}
