package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/kube"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// helm is Helm's configuration for an API server.
func helm(t *testing.T, cfg *rest.Config) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(cfg) }
	flags.Namespace = new("myweb-operator")
	configuration := action.NewConfiguration()
	testenv.Must(t, configuration.Init(flags, "myweb-operator", "secret"))
	return configuration
}

func server(t *testing.T) (*rest.Config, client.Client) {
	t.Helper()
	cfg := testenv.NewAPIServer(t)
	c, err := client.New(cfg, client.Options{})
	testenv.Must(t, err)
	return cfg, c
}

// An upgrade leaves alone what the operator wrote into objects of the chart.
func TestAnUpgradeKeepsWhatTheOperatorWrote(t *testing.T) {
	cfg, c := server(t)
	chart, err := loader.Load(folder)
	testenv.Must(t, err)
	v := values{"webhooks": values{"enabled": true}}
	install := action.NewInstall(helm(t, cfg))
	install.ReleaseName, install.Namespace, install.CreateNamespace, install.WaitStrategy = "web", "myweb-operator", true,
		kube.HookOnlyStrategy
	if _, err := install.Run(chart, v); err != nil {
		t.Fatal(err)
	}
	written := operatorWrites(t, c)

	upgrade := action.NewUpgrade(helm(t, cfg))
	upgrade.Namespace, upgrade.WaitStrategy = "myweb-operator", kube.HookOnlyStrategy
	v["replicas"], v["image"] = 2, values{"tag": "v2"}
	if _, err := upgrade.Run("web", chart, v); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, operatorWrote(t, c)); diff != "" {
		t.Errorf("the upgrade took away what the operator wrote (-before +after):\n%s", diff)
	}
}

// operatorWrites writes as the operator does: its certificate, and the authority that the API server trusts.
func operatorWrites(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	key := client.ObjectKey{Namespace: "myweb-operator", Name: "myweb-operator-webhook"}
	secret, hooks := &corev1.Secret{},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "myweb-operator"}}
	testenv.Must(t, c.Get(t.Context(), key, secret))
	secret.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	testenv.Must(t, c.Update(t.Context(), secret, client.FieldOwner("myweb-operator")))
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(hooks), hooks))
	hooks.Webhooks[0].ClientConfig.CABundle = authority
	testenv.Must(t, c.Update(t.Context(), hooks, client.FieldOwner("myweb-operator")))
	return operatorWrote(t, c)
}

func operatorWrote(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	secret, hooks := &corev1.Secret{}, &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "myweb-operator", Name: "myweb-operator-webhook"},
		secret); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Name: "myweb-operator"}, hooks))
	return map[string]string{"certificate": string(secret.Data["tls.crt"]),
		"authority": string(hooks.Webhooks[0].ClientConfig.CABundle)}
}

// authority is the certificate of an authority, which the API server can read.
var authority = func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}()
