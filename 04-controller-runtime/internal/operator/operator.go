// Package operator puts the MyWeb operator together: flags, manager, cache, lease, probes, metrics.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/lease"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
)

// drainTimeout is the time that work in progress gets to end when the manager must stop. It must be less than a pod's
// terminationGracePeriodSeconds: the lease is released after it, and before SIGKILL.
const drainTimeout = 8 * time.Second

// Run works until ctx ends. The error says why it could not start, or what broke it.
func Run(ctx context.Context, o Options) error {
	logger := hardening.Deduplicate(ctx, zap.New(zap.UseFlagOptions(&o.Log)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's own lines
	if err := o.check(); err != nil {
		return err
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	mgr, err := NewManager(cfg, o)
	if err != nil {
		return err
	}
	return start(ctx, mgr)
}

// start starts a manager and waits for its end. A manager whose cache never synced, because a permission is missing, does
// not notice that it must stop; but such a manager has no work in progress.
func start(ctx context.Context, mgr ctrl.Manager) error {
	ended := make(chan error, 1)
	starting, cancel := context.WithCancel(ctx)
	go func() { defer cancel(); ended <- mgr.Start(ctx) }()
	if mgr.GetCache().WaitForCacheSync(starting) || ctx.Err() == nil {
		return <-ended
	}
	return nil
}

// NewManager returns a manager that runs the operator on the API server of cfg. It fails when the API server cannot be
// reached, or when the CRD is not installed.
func NewManager(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = myweb.FieldOwner // in the API server's logs
	// client-go's own default, 5 requests a second for each API group, is invisible and rarely meant.
	cfg.QPS = -1
	hooks, err := webhook.New(cfg, o.Webhooks)
	if err != nil {
		return nil, err
	}
	options := o.Manager
	options.Scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(options.Scheme))
	utilruntime.Must(webv1.AddToScheme(options.Scheme))
	options.WebhookServer = hooks.Server()
	// A reconcile reads what the one before it wrote, even when the watch is a moment behind.
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	options.Cache = CacheOptions(o.Namespaces)
	options.GracefulShutdownTimeout = new(drainTimeout)
	if options.Metrics.SecureServing { // the API server is asked who sends a token, and whether it may get /metrics
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if options.LeaderElection {
		if cfg, err = lease.Elect(cfg, &options); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("make a manager for the API server %s: %w", cfg.Host, err)
	}
	err = setup(mgr, hooks)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster at %s has no MyWebs: install the CRD (kubectl apply -f config/crd)", cfg.Host)
	}
	return mgr, err
}

// setup adds all parts of the operator to a manager.
func setup(mgr ctrl.Manager, hooks *webhook.Webhooks) error {
	return errors.Join(
		AddController(mgr),
		hooks.SetupWithManager(mgr),
		mgr.Add(manager.RunnableFunc(serveConditionCounts(mgr.GetCache()))),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the caches have not synced yet")
			}
			return nil
		}),
	)
}
