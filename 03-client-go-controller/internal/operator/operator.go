package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients, queues, leases
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/controller"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webscheme "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/scheme"
)

// userAgent names the program in the API server's logs.
const userAgent = "myweb-controller"

// Run works until ctx ends. The error says why it could not start, or what broke it.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	klog.SetSlogLogger(o.logger(os.Stderr))
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

// Config is for the API server that the flags or the surroundings name.
func Config(o Options) (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil || o.Kubeconfig != "" || os.Getenv("KUBECONFIG") != "" {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.Kubeconfig
		cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	cfg.UserAgent = userAgent
	// client-go's own default, 5 requests a second for each API group, is invisible and rarely meant.
	cfg.QPS = -1
	if o.QPS > 0 { // one for all: each set of clients would else have one of its own
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.QPS), o.Burst)
	}
	return cfg, nil
}

// run puts the parts together: caches are filled first, by every replica, so that a new leader starts at
// once; then the lease; then the work.
func run(ctx context.Context, cfg *rest.Config, o Options, probes, metrics net.Listener) error {
	var held *lease
	if o.LeaderElect {
		var err error
		if held, err = elect(cfg, o); err != nil {
			return err
		}
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{held, next} })
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
		return nil // told to stop before the API server answered
	} else if err != nil {
		return err
	}
	caches, err := controller.NewCaches(kube, web, controller.Trim)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	defer broadcaster.Shutdown()
	// What was said before the end is still sent, when there is time for it.
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	c, err := controller.New(kube, web, caches, broadcaster.NewRecorder(webscheme.Scheme, "myweb-operator"), controller.Options{})
	if err != nil {
		return err
	}
	serve(ctx, probes, probeHandler(caches, held))
	serve(ctx, metrics, legacyregistry.Handler())

	watching, stop := context.WithCancel(ctx)
	defer caches.Shutdown()
	defer stop()
	caches.Start(watching)
	work := func(ctx context.Context) {
		if caches.Wait(ctx) {
			c.Run(ctx, o.Workers)
		}
	}
	if held != nil {
		return held.run(ctx, work)
	}
	work(ctx)
	return nil
}

// elect prepares the lease. Its requests have a client of their own: they must pass the fence, and must
// not wait in line behind others.
func elect(cfg *rest.Config, o Options) (*lease, error) {
	namespace := o.LeaderElectionNamespace
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(os.ReadFile); err != nil {
			return nil, err
		}
	}
	own := rest.CopyConfig(cfg)
	own.RateLimiter, own.Timeout = nil, leaseRenew/2
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	return newLease(kube, namespace)
}

// CRDInstalled returns an error that says what to do when the API server cannot be reached or does not
// know MyWebs.
func CRDInstalled(ctx context.Context, web versioned.Interface, host string) error {
	resources, err := web.Discovery().ServerResourcesForGroupVersionWithContext(ctx, webv1.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask the API server %s for MyWebs: %w", host, err)
	}
	if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "mywebs" }) {
		return nil
	}
	return fmt.Errorf("the cluster at %s does not know MyWebs: install the CRD first (kubectl apply -f config/crd)", host)
}

// probeHandler answers /healthz: the process need not be started again, and /readyz: its caches are
// filled.
func probeHandler(caches *controller.Caches, held *lease) http.Handler {
	mux := http.NewServeMux()
	answer := func(path string, check func() error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	answer("/healthz", func() error {
		if held == nil {
			return nil
		}
		return held.elector.Check(leaseDuration) // a leader that hangs since its lease ran out
	})
	answer("/readyz", func() error {
		if !caches.Filled() {
			return errors.New("the caches are not filled yet")
		}
		return nil
	})
	return mux
}

// serve answers requests until ctx ends. A nil listener is off.
func serve(ctx context.Context, l net.Listener, handler http.Handler) {
	if l == nil {
		return
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Could not serve", "address", l.Addr())
		}
	}()
}
