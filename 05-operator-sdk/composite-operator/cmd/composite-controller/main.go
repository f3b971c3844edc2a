// Command composite-controller keeps the children of custom resources in the state that a hook desires, in place of
// Metacontroller.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/composite-operator/internal/composite"
)

// Options are the flags.
type options struct {
	controller, hookProgram string
	metrics, probes         string
	leaderElect             bool
	leaseNamespace          string
	workers                 int
	log                     zap.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.controller, "controller", "config/compositecontroller.yaml", "manifest of the CompositeController")
	flags.StringVar(&o.hookProgram, "hook-program", "",
		"program that is started as the sync hook, in place of the manifest's URL")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.StringVar(&o.probes, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's own)")
	flags.IntVar(&o.workers, "max-concurrent-reconciles", 4, "how many parents are handled at once")
	o.log.StacktraceLevel = zapcore.PanicLevel // a returned error names its origin
	o.log.BindFlags(flags)
}

func main() {
	var o options
	o.bind(flag.CommandLine)
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "composite-controller:", err)
		os.Exit(1)
	}
}

// run runs the controller until ctx ends.
func run(ctx context.Context, o options) error {
	logger := zap.New(zap.UseFlagOptions(&o.log))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's own lines
	manifest, err := composite.ReadConfig(o.controller)
	if err != nil {
		return err
	}
	mgr, err := newManager(o, manifest.Metadata.Name+"-composite-controller")
	if err != nil {
		return err
	}
	r, err := composite.New(mgr.GetClient(), manifest)
	if err != nil {
		return err
	}
	if o.hookProgram != "" {
		if r.URL, err = composite.StartHook(mgr, o.hookProgram); err != nil {
			return err
		}
	}
	if err := r.SetupWithManager(ctx, mgr, o.workers); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(o options, name string) (ctrl.Manager, error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	cfg.UserAgent, cfg.QPS = "composite-controller", -1 // the API server has priority and fairness
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: runtime.NewScheme(), // without types: all objects are unstructured
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured:                    true,
			EnableReadYourWritesConsistency: new(true),
		}},
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                       server.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              name,
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // safe, because the program ends right after the manager
		GracefulShutdownTimeout:       new(9 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	return mgr, mgr.AddHealthzCheck("healthz", healthz.Ping)
}
