package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/lease"
	"example.com/operator-workshop/06-deploy/scale/internal/myweb"
	"example.com/operator-workshop/06-deploy/scale/internal/operator"
)

type options struct {
	shard, bounds, ring, replica, probes, metrics, namespace string
	elect                                                    bool
	workers                                                  int
	log                                                      zap.Options
}

// run works until ctx ends. All of it is the operator of chapter 04, but for the two parts that choose makes: a cache,
// and a lease.
func run(ctx context.Context, cfg *rest.Config, o options) error {
	way, err := choose(ctx, cfg, o)
	if err != nil {
		return err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS = myweb.FieldOwner, -1
	m := ctrl.Options{Scheme: runtime.NewScheme(), HealthProbeBindAddress: o.probes,
		GracefulShutdownTimeout: new(8 * time.Second)}
	utilruntime.Must(clientgoscheme.AddToScheme(m.Scheme))
	utilruntime.Must(webv1.AddToScheme(m.Scheme))
	m.Metrics.BindAddress = o.metrics
	m.Controller.MaxConcurrentReconciles = o.workers
	m.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	m.Cache = operator.CacheOptions(nil)
	way.restrict(&m.Cache)
	if o.elect {
		cfg = elect(cfg, &m, way)
	}
	mgr, err := ctrl.NewManager(cfg, m)
	if err != nil {
		return err
	}
	err = errors.Join(way.add(mgr), mgr.Add(report{mgr.GetCache(), time.Now()}), mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(r *http.Request) error { return synced(r.Context(), mgr) }))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// elect makes the manager work only while it holds a lease, as in chapter 04, and returns a configuration whose writes
// end with the lease, also after a freeze.
func elect(cfg *rest.Config, m *ctrl.Options, way way) *rest.Config {
	var fence *lease.Lock
	fence = lease.NewLock(way.lock(func() bool { return fence.Held() }))
	m.LeaderElection, m.LeaderElectionID = true, "myweb-operator" // the lock has its own name
	m.LeaderElectionResourceLockInterface, m.LeaderElectionReleaseOnCancel = fence, true
	m.LeaseDuration, m.RenewDeadline = new(15*time.Second), new(10*time.Second)
	m.RetryPeriod = new(time.Second)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(fence.RoundTripper)
	return cfg
}

func synced(ctx context.Context, mgr ctrl.Manager) error {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches have not synced yet")
	}
	return nil
}
