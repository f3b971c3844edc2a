package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// The tests of internal/webhookserver show that certificates rotate, in several replicas and without a failed call.
// These tests show that the rotator, the manifests and the role name the same objects.

func TestTheRotatorIsForTheShippedConfigurations(t *testing.T) {
	got := clusterRotator("myweb-operator")
	var want []rotator.WebhookInfo
	for _, u := range shippedConfigurations(t) {
		kind := rotator.Validating
		if u.GetKind() == "MutatingWebhookConfiguration" {
			kind = rotator.Mutating
		}
		want = append(want, rotator.WebhookInfo{Name: u.GetName(), Type: kind})
		service, _, err := unstructured.NestedStringMap(webhookOf(u), "clientConfig", "service")
		must(t, err)
		if name := service["name"] + "." + service["namespace"] + ".svc"; got.DNSName != name {
			t.Errorf("the certificate is for %s, the API server calls %s", got.DNSName, name)
		}
	}
	if diff := cmp.Diff(want, got.Webhooks); diff != "" {
		t.Error(diff)
	}
}

func TestTheRotatorIsForTheShippedNames(t *testing.T) {
	r := clusterRotator("myweb-operator")
	role, err := os.ReadFile(filepath.Join(shipped, "rbac", "webhook_role.yaml"))
	must(t, err)
	secret, err := os.ReadFile(filepath.Join(shipped, "manager", "webhook.yaml"))
	must(t, err)
	for want, text := range map[string][]byte{
		"  resourceNames:\n  - " + r.SecretKey.Name + "\n  resources:\n  - secrets\n":                             role,
		"  resourceNames:\n  - " + r.Webhooks[0].Name + "\n  resources:\n  - mutatingwebhookconfigurations\n":     role,
		"kind: Secret\nmetadata:\n  name: " + r.SecretKey.Name + "\n  namespace: " + r.SecretKey.Namespace + "\n": secret,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("a shipped file lacks:\n%s", want)
		}
	}
}

func TestWithoutItsSecretItSaysSo(t *testing.T) {
	hooks, err := New(config, Options{Enabled: new(true), Port: testenv.FreePort(t)})
	must(t, err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	err = hooks.rotateInCluster(mgr, "default")
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring("default/"+serviceName), gomega.ContainSubstring("kubectl apply -k config"))))
}
