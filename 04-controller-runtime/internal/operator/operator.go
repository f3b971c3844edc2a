// Package operator puts the MyWeb operator together: flags, manager, controller.
package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/controller"
)

// Options say how the operator runs. The zero value is not useful: Bind gives the defaults.
type Options struct {
	// Metrics and Probes are host:port to listen on; "0" is off.
	Metrics, Probes string
	// LeaderElect makes the operator work only while it holds a lease.
	LeaderElect bool
	// LeaderElectionNamespace is where the lease lies; empty means the pod's own namespace.
	LeaderElectionNamespace string
	// Workers is how many MyWebs are handled at once.
	Workers int
	// Log is the logger's configuration.
	Log zap.Options
}

// Bind adds the flags. --kubeconfig is bound by controller-runtime.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Metrics, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.StringVar(&o.Probes, "health-probe-bind-address", "127.0.0.1:8081", "host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the operator's own, in a cluster)")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many MyWebs are handled at once")
	o.Log.StacktraceLevel = zapcore.PanicLevel // a returned error says where it comes from
	o.Log.BindFlags(flags)
}

// Run works until ctx ends. The error says why it could not start, or what broke it.
func Run(ctx context.Context, o Options) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.Log)))
	if o.Workers < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	}
	if err := portFree(o.Probes); err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w: choose another one, or 0 for none", err)
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	mgr, err := NewManager(cfg, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// NewManager returns a manager that runs the operator on the API server of cfg. It fails when that
// cannot be reached or does not know MyWebs.
func NewManager(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		// A reconcile sees what the one before it wrote, even when the watch is a moment behind.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		// Nobody here reads managed fields, and they are the larger half of many objects.
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},

		Metrics:                       server.Options{BindAddress: o.Metrics},
		HealthProbeBindAddress:        o.Probes,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              "myweb-operator",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // the program ends right after Start
		GracefulShutdownTimeout:       new(8 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	if err := crdInstalled(mgr.GetRESTMapper(), cfg.Host); err != nil {
		return nil, err
	}
	reconciler := &controller.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}
	if err := reconciler.SetupWithManager(mgr, o.Workers); err != nil {
		return nil, err
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
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

// portFree tells early, and by the flag's name, what the manager would tell late.
func portFree(address string) error {
	if address == "0" || address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
