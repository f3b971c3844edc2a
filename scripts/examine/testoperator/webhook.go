package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
)

// The names in config/webhooks.yaml.
const (
	webhookNamespace = "testoperator"
	webhookName      = "greetings"
)

// webhooks are the faults and habits of operators that serve a webhook.
var webhooks = map[string]func(ctx context.Context, kube kubernetes.Interface, certs string, port int){
	ownCA: func(ctx context.Context, kube kubernetes.Interface, certs string, port int) {
		serveMounted(ctx, kube, certs, port, false)
	},
	faints: func(ctx context.Context, kube kubernetes.Interface, certs string, port int) {
		serveMounted(ctx, kube, certs, port, false)
	},
	wrongCA: func(ctx context.Context, kube kubernetes.Interface, certs string, port int) {
		serveMounted(ctx, kube, certs, port, true)
	},
	fromSecret: func(ctx context.Context, kube kubernetes.Interface, _ string, port int) {
		secret, err := kube.CoreV1().Secrets(webhookNamespace).Get(ctx, webhookName, metav1.GetOptions{})
		must(err)
		serveWebhook(port, secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	},
	converts: func(_ context.Context, _ kubernetes.Interface, certs string, port int) {
		serveFiles(certs, port)
	},
	registers: register,
}

// serveFiles serves a webhook with the certificate in a folder.
func serveFiles(dir string, port int) {
	certificate, err := os.ReadFile(filepath.Join(dir, corev1.TLSCertKey))
	must(err)
	key, err := os.ReadFile(filepath.Join(dir, corev1.TLSPrivateKeyKey))
	must(err)
	serveWebhook(port, certificate, key)
}

// serveMounted makes a certificate, as cert-controller does: it writes the certificate into a Secret, the CA into the
// configuration, and waits until the Secret is mounted. With wrongCA the configuration gets another CA.
func serveMounted(ctx context.Context, kube kubernetes.Interface, dir string, port int, wrongCA bool) {
	certificate := ownCertificate(ctx, kube)
	ca := certificate
	if wrongCA {
		var err error
		ca, _, err = certutil.GenerateSelfSignedCertKey("other", nil, nil)
		must(err)
	}
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": %q}]`,
		base64.StdEncoding.EncodeToString(ca))
	_, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, webhookName, types.JSONPatchType,
		[]byte(patch), metav1.PatchOptions{})
	must(err)
	file := filepath.Join(dir, corev1.TLSCertKey)
	for mounted := []byte(nil); !bytes.Equal(mounted, certificate); time.Sleep(50 * time.Millisecond) {
		mounted, _ = os.ReadFile(file)
	}
	serveFiles(dir, port)
}

// register makes a certificate, and creates the configuration of the webhook.
func register(ctx context.Context, kube kubernetes.Interface, _ string, port int) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(webhookName+"."+webhookNamespace+".svc", nil, nil)
	must(err)
	configuration := admissionac.ValidatingWebhookConfiguration(webhookName).WithWebhooks(
		admissionac.ValidatingWebhook().WithName("greetings.test.example.com").WithAdmissionReviewVersions("v1").
			WithSideEffects(admissionv1.SideEffectClassNone).
			WithClientConfig(admissionac.WebhookClientConfig().WithCABundle(certificate...).WithService(
				admissionac.ServiceReference().WithNamespace(webhookNamespace).WithName(webhookName).WithPath("/validate"))).
			WithRules(admissionac.RuleWithOperations().WithOperations(admissionv1.Create, admissionv1.Update).
				WithAPIGroups(greetings.Group).WithAPIVersions(greetings.Version).WithResources(greetings.Resource)))
	_, err = kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx, configuration,
		metav1.ApplyOptions{FieldManager: "testoperator", Force: true})
	must(err)
	serveWebhook(port, certificate, key)
}

// serveWebhook serves a webhook that admits all Greetings, and a webhook that converts them.
func serveWebhook(port int, certificate, key []byte) {
	pair, err := tls.X509KeyPair(certificate, key)
	must(err)
	mux := http.NewServeMux()
	mux.HandleFunc("/validate", admit)
	mux.HandleFunc("/convert", convert)
	server := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), Handler: mux,
		ReadHeaderTimeout: time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() { fmt.Fprintln(os.Stderr, "webhook:", server.ListenAndServeTLS("", "")) }()
}

// ownCertificate returns the certificate in the Secret, and makes both when they do not exist.
func ownCertificate(ctx context.Context, kube kubernetes.Interface) []byte {
	secrets := kube.CoreV1().Secrets(webhookNamespace)
	secret, err := secrets.Get(ctx, webhookName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: webhookName}, Type: corev1.SecretTypeTLS}
		var cert, key []byte
		cert, key, err = certutil.GenerateSelfSignedCertKey(webhookName+"."+webhookNamespace+".svc", nil, nil)
		must(err)
		secret.Data = map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	}
	must(err)
	return secret.Data[corev1.TLSCertKey]
}

// admit answers a request of the API server.
func admit(w http.ResponseWriter, r *http.Request) {
	var review admissionreview.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object := review.Request.Object.Raw
	if os.Getenv("FAULT") == faints && utf8.RuneCount(object) < len(object) {
		panic("a text that is not ASCII")
	}
	review.Response = &admissionreview.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// convert answers a request of the API server for objects of another version: all versions have the same fields.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		object["apiVersion"] = review.Request.DesiredAPIVersion
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind,
		"response": map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects,
			"result": map[string]any{"status": metav1.StatusSuccess}}})
}
