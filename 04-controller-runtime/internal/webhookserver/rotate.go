package webhookserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var logger = ctrl.Log.WithName("webhooks")

// Namespace returns the namespace of the pod in which the operator runs.
func Namespace() (string, error) {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	return strings.TrimSpace(string(namespace)), err
}

// Rotate serves a certificate from a Secret that exists. cert-controller's rotator, in the leader, makes the
// certificate for a year and its authority for ten, keeps both in the Secret, renews them 90 days before they
// end and writes the authority into the webhook configurations. r says for which name, and in which objects.
//
// The library expects the kubelet to project the Secret into a folder. Rotate does not, because a kubelet looks at a
// Secret about once a minute. The first start would take so long, and calls would fail for so long after the authority
// changed, because the authority goes into the webhook configurations at once (TestRotation). So every replica watches
// the Secret and serves its certificate within milliseconds.
func (s *Server) Rotate(mgr ctrl.Manager, r *rotator.CertRotator) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := mgr.GetAPIReader().Get(ctx, r.SecretKey, &corev1.Secret{}); err != nil {
		return fmt.Errorf("get the Secret %s, for the certificate of the webhooks: %w", r.SecretKey, err)
	}
	folder := filepath.Join(os.TempDir(), r.SecretKey.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder for the certificate of the webhooks: %w", err)
	}
	plain, err := PlainClient(mgr)
	if err != nil {
		return err
	}
	r.CertDir, r.RequireLeaderElection, r.IsReady = folder, true, make(chan struct{})
	if err := rotator.AddRotator(managerWith{mgr, plain}, r); err != nil {
		return fmt.Errorf("rotate the certificate of the webhooks: %w", err)
	}
	return s.follow(mgr, r)
}

// PlainClient returns a client that does not use the manager's cache. The manager's own client may wait until the cache
// has its writes: then the cache would hold all Secrets and webhook configurations of the cluster.
func PlainClient(mgr ctrl.Manager) (client.Client, error) {
	return client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
}

// managerWith is a manager with another client.
type managerWith struct {
	ctrl.Manager
	client client.Client
}

// GetClient implements cluster.Cluster.
func (m managerWith) GetClient() client.Client { return m.client }

// everyReplica is a runnable of all replicas, not of the leader alone.
type everyReplica func(context.Context) error

func (f everyReplica) Start(ctx context.Context) error { return f(ctx) }
func (everyReplica) NeedLeaderElection() bool          { return false }

// follow serves the certificate that the Secret holds, whenever the Secret changes.
func (s *Server) follow(mgr ctrl.Manager, r *rotator.CertRotator) error {
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
	take := func(obj any) { s.take(obj.(*corev1.Secret), r.CertDir) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, obj any) { take(obj) },
	})
	return errors.Join(err, mgr.Add(everyReplica(secrets.Start)))
}

// take serves the certificate in a Secret. When it is not usable, the previous certificate stays: it is still valid.
func (s *Server) take(secret *corev1.Secret, folder string) {
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 || len(key) == 0 {
		return // the rotator is about to make one
	}
	// The rotator waits for this file, as for a projected Secret. No program reads it.
	err := errors.Join(s.SetCertificate(cert, key), os.WriteFile(filepath.Join(folder, corev1.TLSCertKey), cert, 0o600))
	if err != nil {
		logger.Error(err, "Kept the last certificate of the webhooks", "secret", client.ObjectKeyFromObject(secret))
		return
	}
	logger.Info("Took the certificate of the webhooks", "secret", client.ObjectKeyFromObject(secret))
}
