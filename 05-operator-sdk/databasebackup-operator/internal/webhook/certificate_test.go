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
	"github.com/open-policy-agent/cert-controller/pkg/rotator"

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
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	webhookv1 "github.com/example/databasebackup-operator/internal/webhook/v1"
)

// namespace is the operator's own, in these tests.
const namespace = "databasebackup-operator-system"

// documents reads the objects of a file in config.
func documents(t *testing.T, path string) (all []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", path))
	must(t, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

// installShipped installs the configurations of config/webhook under the names that kustomize gives them, but
// with url in place of the Service: the cluster of these tests has no pods to which a Service could lead. The
// policy becomes Fail, so that each call that is not answered shows.
func installShipped(t *testing.T, url string) {
	t.Helper()
	for _, u := range documents(t, "webhook/manifests.yaml") {
		u.SetName(operatorName + "-" + u.GetName())
		hook := u.Object["webhooks"].([]any)[0].(map[string]any)
		path := hook["clientConfig"].(map[string]any)["service"].(map[string]any)["path"].(string)
		hook["clientConfig"], hook["failurePolicy"] = map[string]any{"url": url + path}, "Fail"
		must(t, admin.Create(t.Context(), u))
		t.Cleanup(func() { must(t, admin.Delete(context.Background(), u)) })
	}
}

// asOperator returns a configuration for a user with exactly the permissions that config has.
func asOperator(t *testing.T) *rest.Config {
	t.Helper()
	cfg := rest.CopyConfig(apiserver)
	cfg.Impersonate.UserName = operatorName
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: cfg.Impersonate.UserName}}
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	for _, u := range append(documents(t, "rbac/role.yaml"), documents(t, "webhook/role.yaml")...) {
		ref, meta := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: u.GetKind(), Name: u.GetName()}, metav1.ObjectMeta{Name: u.GetName()}
		if u.GetKind() == "Role" {
			u.SetNamespace(namespace) // as kustomize does
			meta.Namespace = namespace
			must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}))
		} else {
			must(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}))
		}
		must(t, admin.Create(t.Context(), u))
	}
	return cfg
}

// TestRotation lets certificates live for seconds while DatabaseBackups are created that must not be refused. The
// manager may do what config says, no more.
func TestRotation(t *testing.T) {
	operator := asOperator(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}}
	must(t, admin.Create(t.Context(), secret))
	port := freePort(t)
	installShipped(t, fmt.Sprintf("https://localhost:%d", port))

	hooks := &Webhooks{} // as New makes it in a cluster
	hooks.server = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = hooks.certificate.get }}})
	r := clusterRotator(namespace)
	r.DNSName, r.CertDir = "localhost", t.TempDir()
	r.ServerCertDuration, r.LookaheadInterval, r.RotationCheckFrequency = 5*time.Second, 4*time.Second, 100*time.Millisecond
	start(t, operator, hooks, r)

	g := gomega.NewWithT(t)
	backup := &databasesv1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
		Spec: databasesv1.DatabaseBackupSpec{DatabaseName: "orders", Schedule: "@daily", BackupPath: "/backups"}}
	ask := func() error { return admin.Create(t.Context(), backup.DeepCopy(), client.DryRunAll) }
	g.Eventually(ask, "20s", "20ms").Should(gomega.Succeed())
	seen := map[string]bool{}
	authority := caBundle(t)
	const while = 4 * time.Second
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := ask(); err != nil {
			t.Fatalf("refused during a rotation: %v", err)
		}
		fingerprint, err := connect(port, authority)
		if err != nil {
			t.Fatalf("a new connection failed during a rotation: %v", err)
		}
		seen[fingerprint] = true
	}
	t.Logf("%d certificates in %s", len(seen), while)
	if len(seen) < 3 {
		t.Errorf("%d certificates were served, want at least 3", len(seen))
	}

	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Data = nil // no authority any more
	must(t, admin.Update(t.Context(), secret))
	began := time.Now()
	g.Eventually(func(g gomega.Gomega) {
		g.Expect(caBundle(t)).NotTo(gomega.Equal(authority))
		_, err := connect(port, caBundle(t))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(ask()).To(gomega.Succeed())
	}, "20s", "20ms").Should(gomega.Succeed())
	t.Logf("another authority, in use after %s", time.Since(began).Round(time.Millisecond))
}

// start runs a manager with the webhooks until the test ends.
func start(t *testing.T, cfg *rest.Config, hooks *Webhooks, r *rotator.CertRotator) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                 server.Options{BindAddress: "0"},
		WebhookServer:           hooks.Server(),
		GracefulShutdownTimeout: new(30 * time.Second), // a rotation that is interrupted tries again for 20 s
	})
	must(t, err)
	must(t, webhookv1.SetupDatabaseBackupWebhookWithManager(mgr, ""))
	must(t, hooks.rotate(mgr, r))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// caBundle is the authority that the webhook configuration names.
func caBundle(t *testing.T) []byte {
	t.Helper()
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: validatingName}, validating))
	return validating.Webhooks[0].ClientConfig.CABundle
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
	mgr, err := ctrl.NewManager(apiserver, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	err = (&Webhooks{}).rotate(mgr, clusterRotator("default"))
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring("default/"+secretName), gomega.ContainSubstring("make deploy"))))
}

func TestTheCertificateIsForTheService(t *testing.T) {
	r := clusterRotator("system")
	if r.DNSName != "databasebackup-operator-webhook-service.system.svc" || r.SecretKey.String() != "system/databasebackup-operator-webhook-server-cert" {
		t.Errorf("%s in %s", r.DNSName, r.SecretKey)
	}
}
