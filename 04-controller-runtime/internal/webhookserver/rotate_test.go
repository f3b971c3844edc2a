package webhookserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

const namespace = "operator-system"

// rotation is a rotator for the names that the project's permissions have, whose certificates are
// replaced after a second of their minute.
func rotation(p permissions, replica int) *rotator.CertRotator {
	r := &rotator.CertRotator{
		SecretKey:              client.ObjectKey{Namespace: namespace, Name: p.names("secrets")[0]},
		DNSName:                "localhost",
		CAName:                 "operator-ca",
		CAOrganization:         "operator",
		FieldOwner:             "operator",
		ControllerName:         fmt.Sprintf("replica-%d", replica), // must differ within a process
		ServerCertDuration:     60 * time.Second,
		LookaheadInterval:      59 * time.Second,
		RotationCheckFrequency: 100 * time.Millisecond,
	}
	for _, name := range p.names("mutatingwebhookconfigurations") {
		r.Webhooks = append(r.Webhooks, rotator.WebhookInfo{Name: name, Type: rotator.Mutating})
	}
	for _, name := range p.names("validatingwebhookconfigurations") {
		r.Webhooks = append(r.Webhooks, rotator.WebhookInfo{Name: name, Type: rotator.Validating})
	}
	return r
}

// startReplica runs a manager with a webhook that allows everything until the test ends, or stop is called.
func startReplica(t *testing.T, cfg *rest.Config, port int, r *rotator.CertRotator) (stop func()) {
	t.Helper()
	s, err := New(webhook.Options{Host: "127.0.0.1", Port: port})
	must(t, err)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Client: client.Options{Cache: &client.CacheOptions{
			EnableReadYourWritesConsistency: new(true)}},
		Metrics:                       server.Options{BindAddress: "0"},
		WebhookServer:                 s,
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       namespace,
		LeaderElectionConfig:          apiserver, // this test is not about permissions for the lease
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   new(200 * time.Millisecond),
		GracefulShutdownTimeout:       new(time.Duration(0)), // an interrupted rotation is tried again for 20 s
	})
	must(t, err)
	mgr.GetWebhookServer().Register("/allow", &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })})
	must(t, s.Rotate(mgr, r))
	return testenv.Run(t, mgr.Start)
}

// installWebhooks makes the API server ask every replica about every ConfigMap in the namespace default, and
// refuse it when one of them does not answer.
func installWebhooks(t *testing.T, r *rotator.CertRotator, ports []int) {
	t.Helper()
	for _, info := range r.Webhooks {
		mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: info.Name}}
		validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: info.Name}}
		for i, port := range ports {
			url := fmt.Sprintf("https://localhost:%d/allow", port)
			v := admissionv1.ValidatingWebhook{
				Name:                    fmt.Sprintf("replica-%d.example.com", i),
				ClientConfig:            admissionv1.WebhookClientConfig{URL: &url},
				FailurePolicy:           new(admissionv1.Fail),
				SideEffects:             new(admissionv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				NamespaceSelector:       metav1.SetAsLabelSelector(labels.Set{corev1.LabelMetadataName: "default"}),
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"configmaps"}},
				}},
			}
			validating.Webhooks = append(validating.Webhooks, v)
			mutating.Webhooks = append(mutating.Webhooks, admissionv1.MutatingWebhook{
				Name: v.Name, ClientConfig: v.ClientConfig, FailurePolicy: v.FailurePolicy, SideEffects: v.SideEffects,
				AdmissionReviewVersions: v.AdmissionReviewVersions, NamespaceSelector: v.NamespaceSelector, Rules: v.Rules,
			})
		}
		o := client.Object(validating)
		if info.Type == rotator.Mutating {
			o = mutating
		}
		must(t, admin.Create(t.Context(), o))
		t.Cleanup(func() { must(t, admin.Delete(context.Background(), o)) })
	}
}

// TestRotation lets certificates live for seconds while objects are created that must not be refused. Two replicas
// are asked about each. They have the permissions that the project ships for rotation, and no others.
func TestRotation(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	g := gomega.NewWithT(t)
	shipped, ports := shippedPermissions(t), []int{testenv.FreePort(t), testenv.FreePort(t)}
	operator, r := shipped.grant(t, namespace), rotation(shipped, 0)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.SecretKey.Name}}
	must(t, admin.Create(t.Context(), secret))
	installWebhooks(t, r, ports)
	began := time.Now()
	stopLeader := startReplica(t, operator, ports[0], r)
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "asked"}}
	ask := func() error { return admin.Create(t.Context(), asked.DeepCopy(), client.DryRunAll) }
	authority := func() []byte {
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
		return secret.Data["ca.crt"]
	}
	g.Eventually(func() error {
		_, err := connect(ports[0], authority())
		return err
	}, "1m", "20ms").Should(gomega.Succeed())
	t.Logf("the first certificate was served after %s", time.Since(began).Round(time.Millisecond))
	startReplica(t, operator, ports[1], rotation(shipped, 1)) // a follower
	g.Eventually(ask, "1m", "20ms").Should(gomega.Succeed())

	first, seen := authority(), []map[string]bool{{}, {}}
	rotated := func() bool { return min(len(seen[0]), len(seen[1])) >= 3 }
	began = time.Now()
	for since := time.Duration(0); since < 5*time.Second || !rotated() && since < 50*time.Second; since = time.Since(began) {
		time.Sleep(10 * time.Millisecond)
		must(t, ask())
		for i, port := range ports {
			fingerprint, err := connect(port, first)
			must(t, err)
			seen[i][fingerprint] = true
		}
	}
	t.Logf("%d certificates in %s, %d in the follower", len(seen[0]), time.Since(began).Round(time.Second), len(seen[1]))
	for i := range seen {
		g.Expect(len(seen[i])).To(gomega.BeNumerically(">=", 3), "certificates of replica %d", i)
	}

	must(t, admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data": null}`))))
	began = time.Now()
	g.Eventually(func(g gomega.Gomega) {
		now := authority()
		g.Expect(now).NotTo(gomega.Or(gomega.BeEmpty(), gomega.Equal(first)))
		for _, port := range ports {
			_, err := connect(port, now)
			g.Expect(err).NotTo(gomega.HaveOccurred())
		}
		g.Expect(ask()).To(gomega.Succeed())
	}, "1m", "20ms").Should(gomega.Succeed())
	t.Logf("another authority was in use after %s", time.Since(began).Round(time.Millisecond))

	changedAuthority(t, r, authority, ask)

	stopLeader()
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	last := secret.Data[corev1.TLSCertKey]
	g.Eventually(func(g gomega.Gomega) { // the next leader rotates
		_, err := connect(ports[1], authority())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(secret.Data[corev1.TLSCertKey]).NotTo(gomega.Equal(last))
	}, "1m", "20ms").Should(gomega.Succeed())
}

// changedAuthority replaces the webhook configurations, by manifests without authority and with another one.
func changedAuthority(t *testing.T, r *rotator.CertRotator, authority func() []byte, ask func() error) {
	t.Helper()
	another, _, err := certutil.GenerateSelfSignedCertKey("another", nil, nil)
	must(t, err)
	for _, info := range r.Webhooks {
		for _, bundle := range [][]byte{nil, another} {
			mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
			o, trusted := client.Object(validating), func() *[]byte { return &validating.Webhooks[0].ClientConfig.CABundle }
			if info.Type == rotator.Mutating {
				o, trusted = mutating, func() *[]byte { return &mutating.Webhooks[0].ClientConfig.CABundle }
			}
			gomega.NewWithT(t).Eventually(func() error { // the rotator writes the same objects
				must(t, admin.Get(t.Context(), client.ObjectKey{Name: info.Name}, o))
				*trusted() = bundle
				return admin.Update(t.Context(), o)
			}, "1m", "20ms").Should(gomega.Succeed())
			gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
				must(t, admin.Get(t.Context(), client.ObjectKey{Name: info.Name}, o))
				g.Expect(*trusted()).To(gomega.Equal(authority()))
				g.Expect(ask()).To(gomega.Succeed())
			}, "1m", "20ms").Should(gomega.Succeed())
		}
	}
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
