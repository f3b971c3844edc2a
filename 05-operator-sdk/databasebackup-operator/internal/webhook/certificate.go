package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What rotation may do, beside the operator's own permissions: controller-gen makes config/webhook/role.yaml of
// it. What is written is named. Lists and watches are not: the library watches every Secret in the operator's
// namespace, so nothing else should lie there, and all configurations of validating webhooks, which hold no secret.
//
// A marker with a namespace makes a Role beside the ClusterRole. "system" is what kustomize replaces by the
// operator's namespace. The names in resourceNames are those after kustomize gave its prefix.
//
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,resourceNames=databasebackup-operator-webhook-server-cert,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=databasebackup-operator-validating-webhook-configuration,verbs=update

// Names after kustomize gave its prefix.
const (
	operatorName   = "databasebackup-operator"
	serviceName    = operatorName + "-webhook-service"
	secretName     = operatorName + "-webhook-server-cert"
	validatingName = operatorName + "-validating-webhook-configuration"

	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

var logger = ctrl.Log.WithName("webhooks")

// A certificate is the one that is served at the moment. It changes while requests are served.
type certificate struct {
	current atomic.Pointer[tls.Certificate]
}

var errNoCertificate = errors.New("the webhooks have no certificate yet")

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := c.current.Load(); now != nil {
		return now, nil
	}
	return nil, errNoCertificate
}

// set serves another certificate from the next connection on.
func (c *certificate) set(certPEM, keyPEM []byte) error {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err == nil {
		c.current.Store(&pair)
	}
	return err
}

// everyReplica is a part of the operator that runs in all replicas, be they leader or not.
type everyReplica func(context.Context) error

func (f everyReplica) Start(ctx context.Context) error { return f(ctx) }
func (everyReplica) NeedLeaderElection() bool          { return false }

// rotateInCluster keeps a certificate for the Service of the webhooks.
func (w *Webhooks) rotateInCluster(mgr ctrl.Manager) error {
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return fmt.Errorf("find the operator's namespace: %w", err)
	}
	return w.rotate(mgr, clusterRotator(strings.TrimSpace(string(namespace))))
}

// clusterRotator says what to keep: a certificate for the Service, valid for a year, and its authority,
// for ten, in a Secret; both are renewed 90 days before they end. The authority goes into the webhook
// configuration as its caBundle.
func clusterRotator(namespace string) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:             client.ObjectKey{Namespace: namespace, Name: secretName},
		DNSName:               serviceName + "." + namespace + ".svc",
		CAName:                operatorName + "-ca",
		CAOrganization:        operatorName,
		Webhooks:              []rotator.WebhookInfo{{Name: validatingName, Type: rotator.Validating}},
		FieldOwner:            operatorName,
		RequireLeaderElection: true, // one writes, all follow
		IsReady:               make(chan struct{}),
		CertDir:               filepath.Join(os.TempDir(), secretName),
	}
}

// rotate makes the leader keep the Secret and the webhook configuration as r says, and every replica
// serve the certificate in the Secret.
//
// The usual way is to mount the Secret. But a node looks at a mounted Secret about once a minute: so
// long would the first start take, and so long would calls fail after the authority changed, for it goes
// into the webhook configuration at once. A watch tells within milliseconds. The authority is replaced,
// not joined by its successor, so a call may still fail in that one moment in ten years; a renewed
// certificate is valid under the same authority and costs no call.
func (w *Webhooks) rotate(mgr ctrl.Manager, r *rotator.CertRotator) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := mgr.GetAPIReader().Get(ctx, r.SecretKey, &corev1.Secret{}); err != nil {
		return fmt.Errorf("get the Secret %s, for the certificate of the webhooks: %w: install all of config "+
			"(make deploy), or set ENABLE_WEBHOOKS to false", r.SecretKey, err)
	}
	if err := os.MkdirAll(r.CertDir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the certificate of the webhooks: %w", err)
	}
	plain, err := plainClient(mgr)
	if err != nil {
		return err
	}
	if err := rotator.AddRotator(managerWith{mgr, plain}, r); err != nil {
		return fmt.Errorf("rotate the certificate of the webhooks: %w", err)
	}
	return w.certificate.follow(mgr, r)
}

// plainClient returns a client that has nothing to do with the manager's cache. The manager's own client
// waits until the cache shows what it wrote: of Secrets and webhook configurations that would make the
// cache hold all of the cluster.
func plainClient(mgr ctrl.Manager) (client.Client, error) {
	return client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
}

// managerWith is a manager with another client.
type managerWith struct {
	ctrl.Manager
	client client.Client
}

// GetClient implements cluster.Cluster.
func (m managerWith) GetClient() client.Client { return m.client }

// follow serves the certificate that the rotator's Secret holds, whenever that changes.
func (c *certificate) follow(mgr ctrl.Manager, r *rotator.CertRotator) error {
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{r.SecretKey.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", r.SecretKey.Name),
		}},
	})
	if err != nil {
		return err
	}
	informer, err := secrets.GetInformer(context.Background(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	take := func(obj any) { c.take(obj.(*corev1.Secret), r.CertDir) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, obj any) { take(obj) },
	})
	return errors.Join(err, mgr.Add(everyReplica(secrets.Start)))
}

// take serves the certificate in a Secret. Without a usable one the last stays: it is still valid.
func (c *certificate) take(secret *corev1.Secret, folder string) {
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 || len(key) == 0 {
		return // the rotator is about to make one
	}
	// The library expects a mounted Secret, and says ready when it sees this file. Nobody reads it.
	if err := errors.Join(c.set(cert, key), os.WriteFile(filepath.Join(folder, corev1.TLSCertKey), cert, 0o600)); err != nil {
		logger.Error(err, "Kept the certificate of the webhooks", "secret", client.ObjectKeyFromObject(secret))
		return
	}
	logger.Info("Took the certificate of the webhooks", "secret", client.ObjectKeyFromObject(secret))
}
