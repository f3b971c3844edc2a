package operator

import (
	"context"
	"net"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients, queues, leases
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/controller"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webscheme "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/scheme"
)

// Run works until ctx ends. The error is the reason why it could not start, or could not continue.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	klog.SetLoggerWithOptions(o.logger(os.Stderr), klog.ContextualLogger(true))
	probes, err := listen("health-probe-bind-address", o.Probes)
	if err != nil {
		return err
	}
	metrics, err := listen("metrics-bind-address", o.Metrics)
	if err != nil {
		return err
	}
	cfg, err := Config(o)
	if err != nil {
		return err
	}
	return run(ctx, cfg, o, probes, metrics)
}

// run connects the parts. Every replica syncs its caches first, so that a new leader starts at once. Then the
// lease decides which replica works.
func run(ctx context.Context, cfg *rest.Config, o Options, probes, metrics net.Listener) error {
	var held *lease
	if o.LeaderElect {
		var err error
		if held, err = newLease(cfg, o.LeaderElectionNamespace); err != nil {
			return err
		}
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	web, err := versioned.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if err := CRDInstalled(ctx, web, cfg.Host); ctx.Err() != nil {
		return nil // asked to stop before the API server answered
	} else if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	defer broadcaster.Shutdown()
	// Events that were recorded before the end are still sent, if there is time.
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	c, err := controller.NewController(kube, web, broadcaster.NewRecorder(webscheme.Scheme, myweb.FieldOwner))
	if err != nil {
		return err
	}
	serve(ctx, probes, probeHandler(c.HasSynced, held))
	serve(ctx, metrics, legacyregistry.Handler())

	watching, stop := context.WithCancel(ctx)
	defer c.ShutdownInformers()
	defer stop()
	c.StartInformers(watching)
	work := func(ctx context.Context) { c.Run(ctx, o.Workers) }
	if held == nil {
		work(ctx)
		return nil
	}
	return held.run(ctx, work)
}
