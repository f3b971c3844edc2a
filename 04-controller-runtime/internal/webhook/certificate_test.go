package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// installShipped installs the configurations of config/webhook as they are, but with url in place of the
// Service: the cluster of these tests has no pods to which a Service could lead.
func installShipped(t *testing.T, url string) {
	t.Helper()
	all, err := shippedConfigurations()
	must(t, err)
	for _, u := range all {
		local := u.DeepCopy()
		must(t, byURL(local, url, nil))
		hook := func(u *unstructured.Unstructured) map[string]any {
			return u.Object["webhooks"].([]any)[0].(map[string]any)
		}
		hook(u)["clientConfig"] = map[string]any{"url": hook(local)["clientConfig"].(map[string]any)["url"]}
		must(t, admin.Create(t.Context(), u))
		t.Cleanup(func() { must(t, admin.Delete(context.Background(), u)) })
	}
}

// asOperator returns a configuration for a user with exactly the shipped permissions.
func asOperator(t *testing.T) *rest.Config {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate.UserName = "myweb-operator"
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: cfg.Impersonate.UserName}}
	must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: configurationName}})))
	for _, file := range []string{"role.yaml", "webhook_role.yaml"} {
		data, err := os.ReadFile(filepath.Join(shipped, "rbac", file))
		must(t, err)
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), u)))
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: u.GetKind(), Name: u.GetName()}
			meta := metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace()}
			if u.GetKind() == "Role" {
				must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(),
					&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})))
			} else {
				must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(),
					&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})))
			}
		}
	}
	return cfg
}

// TestRotation lets certificates live for seconds while MyWebs are created that must not be refused: the
// policy of the webhook that they need is Fail. The manager may do what config/rbac says, no more.
func TestRotation(t *testing.T) {
	const ns = "myweb-operator"
	operator := asOperator(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: serviceName}}
	must(t, admin.Create(t.Context(), secret))
	port := freePort(t)
	installShipped(t, fmt.Sprintf("https://localhost:%d", port))

	hooks, err := New(config, Options{Enabled: new(true), Port: port})
	must(t, err)
	hooks.cluster = true // but neither a pod's namespace nor a Service
	r := clusterRotator(ns)
	r.DNSName, r.CertDir = "localhost", t.TempDir()
	r.ServerCertDuration, r.LookaheadInterval, r.RotationCheckFrequency = 5*time.Second, 4*time.Second, 100*time.Millisecond
	startManager(t, operator, hooks, func(mgr ctrl.Manager) error { return errors.Join(hooks.serveWith(mgr), hooks.rotate(mgr, r)) })

	ask := func() error { return admin.Create(t.Context(), myweb("default", "web"), client.DryRunAll) }
	eventually(t, func(g gomega.Gomega) { g.Expect(ask()).To(gomega.Succeed()) })
	seen := map[string]bool{}
	authority := caBundle(t)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := ask(); err != nil {
			t.Fatalf("refused during a rotation: %v", err)
		}
		fingerprint, err := connect(port, authority)
		if err != nil {
			t.Fatalf("a new connection failed during a rotation: %v", err)
		}
		seen[fingerprint] = true
	}
	t.Logf("%d certificates in 5 s", len(seen))
	if len(seen) < 3 {
		t.Errorf("%d certificates were served, want at least 3", len(seen))
	}

	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Data = nil // no authority any more
	must(t, admin.Update(t.Context(), secret))
	began := time.Now()
	eventually(t, func(g gomega.Gomega) {
		g.Expect(caBundle(t)).NotTo(gomega.Equal(authority))
		_, err := connect(port, caBundle(t))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(ask()).To(gomega.Succeed())
	})
	t.Logf("another authority, in use after %s", time.Since(began).Round(time.Millisecond))
}

// caBundle is the authority that both webhook configurations name.
func caBundle(t *testing.T) []byte {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: configurationName}, mutating))
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: configurationName}, validating))
	a, b := mutating.Webhooks[0].ClientConfig.CABundle, validating.Webhooks[0].ClientConfig.CABundle
	if string(a) != string(b) {
		return nil // one of them is still to come
	}
	return a
}

// connect opens a connection as the API server does, and returns which certificate it met.
func connect(port int, authority []byte) (fingerprint string, err error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: roots, ServerName: "localhost"})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return string(conn.ConnectionState().PeerCertificates[0].Signature), nil
}

func TestTheLastUsableCertificateStays(t *testing.T) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	must(t, err)
	other, _, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	must(t, err)
	secret := func(cert, key []byte) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}}
	}
	c := &certificate{}
	if got, err := c.get(nil); err == nil || got != nil {
		t.Errorf("served %v before there was a certificate", got)
	}
	c.take(secret(cert, key), t.TempDir())
	good, err := c.get(nil)
	must(t, err)
	for name, s := range map[string]*corev1.Secret{
		"an empty Secret":               {},
		"a key of another certificate":  secret(other, key),
		"something that is no key":      secret(cert, []byte("x")),
		"a certificate without its key": secret(other, nil),
	} {
		c.take(s, t.TempDir())
		if got, err := c.get(nil); err != nil || got != good {
			t.Errorf("after %s: %v, %v", name, got, err)
		}
	}
}

func TestWithoutItsSecretItSaysSo(t *testing.T) {
	hooks, err := New(config, Options{Enabled: new(true), Port: freePort(t)})
	must(t, err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	err = hooks.rotate(mgr, clusterRotator("default"))
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring("default/"+serviceName), gomega.ContainSubstring("kubectl apply -k config"))))
}
