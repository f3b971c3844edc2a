package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/nginx-operator/internal/hardening"
)

// drainTimeout is the time that running reconciles have to finish when the manager stops. It must be less than
// a pod's terminationGracePeriodSeconds.
const drainTimeout = 8 * time.Second

// An Operator has the settings that differ between the programs.
type Operator struct {
	// Name is the program's, its lease's, and what API server logs and managed fields show.
	Name string
	// Scheme knows all types that the operator uses.
	Scheme *runtime.Scheme
	// Kind must be known to the cluster.
	Kind schema.GroupVersionKind
	// Transform cuts what the cache keeps of each object, beside managed fields; nil cuts nothing.
	Transform toolscache.TransformFunc
	// Webhooks is the server for admission requests, nil without webhooks.
	Webhooks webhook.Server
}

// NewManager returns a manager that works as the options say on the cluster of --kubeconfig, KUBECONFIG, the
// pod, or ~/.kube/config. It returns an error that says what to do when an option is invalid, when the API server
// cannot be reached, or when it does not know the operator's kind. The manager should run until ctx ends.
func NewManager(ctx context.Context, o Options, op Operator) (ctrl.Manager, error) {
	logger := hardening.Deduplicate(ctx, zap.New(zap.UseFlagOptions(&o.Log)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's own lines
	if err := o.check(); err != nil {
		return nil, err
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	return newManager(cfg, o, op)
}

func newManager(cfg *rest.Config, o Options, op Operator) (ctrl.Manager, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = op.Name
	cfg.QPS = -1 // the API server has priority and fairness
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:        op.Scheme,
		WebhookServer: op.Webhooks,
		// A reconcile sees what the one before it wrote, even when the watch is a moment behind.
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:                   CacheOptions(o.Namespaces, op.Transform),
		Metrics:                 o.metrics(),
		HealthProbeBindAddress:  o.Probes,
		GracefulShutdownTimeout: new(drainTimeout),
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        op.Name,
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		// The next replica need not wait until the lease ends. This is safe only because the program ends
		// right after the manager.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	if err := known(mgr.GetRESTMapper(), op.Kind, cfg.Host); err != nil {
		return nil, err
	}
	return mgr, errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping),
		mgr.AddReadyzCheck("caches", hasSynced(mgr.GetCache())),
	)
}

// CacheOptions are for a cache of the named namespaces, or of all when there are none. Managed fields are
// not kept: no code here reads them, and they are the larger half of many objects.
func CacheOptions(namespaces []string, transform toolscache.TransformFunc) cache.Options {
	options := cache.Options{DefaultTransform: func(obj any) (any, error) {
		obj, err := cache.TransformStripManagedFields()(obj)
		if err != nil || transform == nil {
			return obj, err
		}
		return transform(obj)
	}}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// hasSynced is a check that fails until the caches have synced.
func hasSynced(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced yet")
		}
		return nil
	}
}

// known returns an error that says what to do when the API server cannot be reached or does not know a kind.
func known(mapper meta.RESTMapper, kind schema.GroupVersionKind, host string) error {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster at %s does not know the kind %s: install the CRD first (make install)",
			host, kind.Kind)
	}
	if err != nil {
		return fmt.Errorf("ask the API server %s for the kind %s: %w", host, kind.Kind, err)
	}
	return nil
}

// Run starts a manager and waits for its end. A manager whose cache never synced, because it may not read
// something, does not notice that it should stop; it has done nothing yet that would have to finish.
func Run(ctx context.Context, mgr ctrl.Manager) error {
	full, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(full)
		}
	}()
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-full:
		return <-ended
	default:
		return nil
	}
}
