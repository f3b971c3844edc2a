package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
)

// The names in config/webhooks.yaml.
const (
	webhookNamespace = "testoperator"
	webhookName      = "greetings"
)

// serveWebhook serves a webhook that admits all Greetings. It makes its own certificate, as cert-controller does: it
// writes the certificate into a Secret, the CA into the configuration, and waits until the Secret is mounted. With
// wrongCA the configuration gets another CA.
func serveWebhook(ctx context.Context, kube kubernetes.Interface, dir string, port int, wrongCA bool) error {
	certificate, err := ownCertificate(ctx, kube)
	if err != nil {
		return err
	}
	ca := certificate
	if wrongCA {
		if ca, _, err = certutil.GenerateSelfSignedCertKey("other", nil, nil); err != nil {
			return err
		}
	}
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": %q}]`,
		base64.StdEncoding.EncodeToString(ca))
	_, err = kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, webhookName, types.JSONPatchType,
		[]byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	file, key := filepath.Join(dir, corev1.TLSCertKey), filepath.Join(dir, corev1.TLSPrivateKeyKey)
	for mounted := []byte(nil); !bytes.Equal(mounted, certificate); time.Sleep(50 * time.Millisecond) {
		mounted, _ = os.ReadFile(file)
	}
	server := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), Handler: http.HandlerFunc(admit),
		ReadHeaderTimeout: time.Second}
	go func() { fmt.Fprintln(os.Stderr, "webhook:", server.ListenAndServeTLS(file, key)) }()
	return nil
}

// ownCertificate returns the certificate in the Secret, and makes both when they do not exist.
func ownCertificate(ctx context.Context, kube kubernetes.Interface) ([]byte, error) {
	secrets := kube.CoreV1().Secrets(webhookNamespace)
	secret, err := secrets.Get(ctx, webhookName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: webhookName}, Type: corev1.SecretTypeTLS}
		var cert, key []byte
		cert, key, err = certutil.GenerateSelfSignedCertKey(webhookName+"."+webhookNamespace+".svc", nil, nil)
		if err != nil {
			return nil, err
		}
		secret.Data = map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	}
	return secret.Data[corev1.TLSCertKey], err
}

// admit answers a request of the API server.
func admit(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind,
		"response": map[string]any{"uid": review.Request.UID, "allowed": true}})
}
