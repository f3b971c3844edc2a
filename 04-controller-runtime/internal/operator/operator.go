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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/controller"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
)

const (
	// userAgent names the program in the API server's logs, and what it writes in managed fields.
	userAgent = "myweb-operator"
	// drainTimeout is what work in progress gets to end when the manager is told to stop. It must be less
	// than a pod's terminationGracePeriodSeconds: the lease is given back after it, and before SIGKILL.
	drainTimeout = 8 * time.Second
)

// Run works until ctx ends. The error says why it could not start, or what broke it.
func Run(ctx context.Context, o Options) error {
	logger := zap.New(zap.UseFlagOptions(&o.Log))
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
	return run(ctx, mgr)
}

// run starts a manager and waits for its end. A manager whose cache was never filled, because it may not
// read something, does not hear that it shall stop; it did nothing yet that would have to be ended.
func run(ctx context.Context, mgr ctrl.Manager) error {
	filled, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(filled)
		}
	}()
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-filled:
		return <-ended
	default:
		return nil
	}
}

// limited returns a configuration for requests that are paced as the flags say.
func limited(cfg *rest.Config, o Options) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = userAgent
	// client-go's own default, 5 requests a second for each API group, is invisible and rarely meant.
	cfg.QPS = -1
	if o.QPS > 0 { // one for all: a client for each kind would else have one of its own
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.QPS), o.Burst)
	}
	return cfg
}

// NewManager returns a manager that runs the operator on the API server of cfg. It fails when that
// cannot be reached or does not know MyWebs.
func NewManager(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	cfg = limited(cfg, o)
	hooks, err := webhook.New(cfg, o.Webhooks)
	if err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Scheme:        scheme,
		WebhookServer: hooks.Server(),
		// A reconcile sees what the one before it wrote, even when the watch is a moment behind.
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:                   controller.CacheOptions(o.Namespaces),
		Metrics:                 metricsOptions(cfg, o),
		HealthProbeBindAddress:  o.Probes,
		GracefulShutdownTimeout: new(drainTimeout),
	}
	if o.LeaderElect {
		held, err := newLease(cfg, o.LeaderElectionNamespace)
		if err != nil {
			return nil, err
		}
		options.LeaderElection, options.LeaderElectionID = true, leaseName
		options.LeaderElectionResourceLockInterface = held
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(leaseDuration), new(leaseRenew), new(leaseRetry)
		options.LeaderElectionReleaseOnCancel = true // the manager does it last, and the program ends right after
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{held, next} })
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	if err := crdInstalled(mgr.GetRESTMapper(), cfg.Host); err != nil {
		return nil, err
	}
	return mgr, setup(mgr, hooks, o)
}

// setup adds to a manager what it shall run.
func setup(mgr ctrl.Manager, hooks *webhook.Webhooks, o Options) error {
	web := controller.New(mgr.GetClient(), mgr.GetEventRecorder("myweb-operator"))
	return errors.Join(
		web.SetupWithManager(mgr, o.Workers),
		hooks.SetupWithManager(mgr),
		mgr.Add(manager.RunnableFunc(controller.ServeConditionCounts(mgr.GetCache()))),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", cachesFilled(mgr.GetCache())),
	)
}

// metricsOptions say who gets the metrics. With TLS, the API server is asked who sends a token, and
// whether that one may get /metrics: config/rbac has the roles of both sides. These questions are no
// writes, and a replica that waits for its lease has to ask them too: so cfg is without the fence.
func metricsOptions(cfg *rest.Config, o Options) server.Options {
	options := server.Options{BindAddress: o.Metrics, SecureServing: o.MetricsSecure, CertDir: o.MetricsCertDir}
	if o.MetricsSecure {
		options.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) {
			plain, err := rest.HTTPClientFor(cfg)
			if err != nil {
				return nil, err
			}
			return filters.WithAuthenticationAndAuthorization(cfg, plain)
		}
	}
	return options
}

// cachesFilled is a check that fails until the cache holds all that there was when it was started.
func cachesFilled(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

// crdInstalled returns an error that says what to do when the API server cannot be reached or does not
// know MyWebs.
func crdInstalled(mapper meta.RESTMapper, host string) error {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: webv1.SchemeGroupVersion.Group, Kind: "MyWeb"}, webv1.SchemeGroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster at %s does not know MyWebs: install the CRD first (kubectl apply -f config/crd)", host)
	}
	if err != nil {
		return fmt.Errorf("ask the API server %s for MyWebs: %w", host, err)
	}
	return nil
}
