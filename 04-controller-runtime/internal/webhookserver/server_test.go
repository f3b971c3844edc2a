package webhookserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

func TestTheLastUsableCertificateStays(t *testing.T) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	must(t, err)
	other, _, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	must(t, err)
	secret := func(cert, key []byte) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}}
	}
	s, err := New(webhook.Options{Host: "127.0.0.1", Port: testenv.FreePort(t)})
	must(t, err)
	if got, err := s.certificate(nil); err == nil || got != nil {
		t.Errorf("served %v before there was a certificate", got)
	}
	if err := s.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil)); err == nil {
		t.Error("ready without a certificate")
	}
	s.take(secret(cert, key), t.TempDir())
	good, err := s.certificate(nil)
	must(t, err)
	for name, wrong := range map[string]*corev1.Secret{
		"an empty Secret":               {},
		"a key of another certificate":  secret(other, key),
		"something that is no key":      secret(cert, []byte("x")),
		"a certificate without its key": secret(other, nil),
	} {
		s.take(wrong, t.TempDir())
		if got, err := s.certificate(nil); err != nil || got != good {
			t.Errorf("after %s: %v, %v", name, got, err)
		}
	}
}

// refuse refuses all ConfigMaps, with an error that a webhook may have.
type refuse struct{}

func (refuse) ValidateCreate(_ context.Context, c *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), c.Name, nil)
}

func (r refuse) ValidateUpdate(ctx context.Context, _, c *corev1.ConfigMap) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, c)
}

func (r refuse) ValidateDelete(ctx context.Context, c *corev1.ConfigMap) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, c)
}

func TestWhatCannotBeDecodedPasses(t *testing.T) {
	s, err := New(webhook.Options{Host: "127.0.0.1", Port: testenv.FreePort(t)})
	must(t, err)
	s.Register("/refuse", admission.WithValidator(scheme.Scheme, refuse{}))
	const good, bad = `{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","data":5}`
	for name, test := range map[string]struct {
		request string
		allowed bool
	}{
		"a ConfigMap":                         {`"operation":"CREATE","object":` + good, false},
		"data of a wrong type":                {`"operation":"CREATE","object":` + bad, true},
		"an update to a ConfigMap":            {`"operation":"UPDATE","object":` + good + `,"oldObject":` + good, false},
		"an update of what is stored wrongly": {`"operation":"UPDATE","object":` + good + `,"oldObject":` + bad, true},
	} {
		t.Run(name, func(t *testing.T) {
			review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",` + test.request + `}}`
			request := httptest.NewRequest(http.MethodPost, "/refuse", strings.NewReader(review))
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			s.WebhookMux().ServeHTTP(answer, request)
			if allowed := strings.Contains(answer.Body.String(), `"allowed":true`); allowed != test.allowed {
				t.Errorf("allowed: %v: %s", allowed, answer.Body)
			}
		})
	}
}
