// Package program has the parts of main that are the same in every operator: flags, a manager with metrics, probes and
// a lease, and errors that name the fix. The scaffold writes this code into cmd/main.go of each project.
package program

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/databasebackup-operator/internal/hardening"
)

// drainTimeout is the time that running reconciles have to finish when the manager stops. It must be less than
// a pod's terminationGracePeriodSeconds.
const drainTimeout = 8 * time.Second

// Options are the settings of an operator. The zero value is not useful: Bind sets the defaults.
type Options struct {
	// Namespaces are the namespaces that the operator serves; empty means all.
	Namespaces []string
	// Workers is the number of resources that are handled at once.
	Workers int

	manager ctrl.Options
	log     zap.Options
}

// Bind adds the flags, most of them by the names that the scaffold gives them. --kubeconfig is bound by
// controller-runtime. WATCH_NAMESPACE is read: namespaces separated by commas, empty or unset for all.
func (o *Options) Bind(flags *flag.FlagSet) {
	o.Namespaces = strings.FieldsFunc(os.Getenv("WATCH_NAMESPACE"), func(r rune) bool { return r == ',' || r == ' ' })
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many resources are handled at once")
	m := &o.manager
	flags.StringVar(&m.Metrics.BindAddress, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.BoolVar(&m.Metrics.SecureServing, "metrics-secure", true,
		"serve metrics over TLS, and only to users who may read them; without it, on 127.0.0.1 only")
	flags.StringVar(&m.Metrics.CertDir, "metrics-cert-path", "",
		"folder with a certificate for metrics, in tls.crt and tls.key (default: made at the start)")
	flags.StringVar(&m.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&m.LeaderElection, "leader-elect", false,
		"work only while holding a lease, so that several replicas can run")
	flags.StringVar(&m.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the pod's own)")
	o.log.StacktraceLevel = zapcore.PanicLevel // a returned error names its origin
	o.log.BindFlags(flags)
}

// check returns an error that names the first invalid setting.
func (o *Options) check() error {
	for _, namespace := range o.Namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return fmt.Errorf("WATCH_NAMESPACE names %q: %s", namespace, wrong[0])
		}
	}
	if o.Workers < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	}
	metrics := o.manager.Metrics
	host, _, err := net.SplitHostPort(metrics.BindAddress)
	if metrics.BindAddress != "0" && !metrics.SecureServing && (err != nil || !net.ParseIP(host).IsLoopback()) {
		return fmt.Errorf("--metrics-bind-address is %q: without --metrics-secure it must be 0 or 127.0.0.1:port, "+
			"because nothing protects that port", metrics.BindAddress)
	}
	return nil
}

// DefaultImage returns the image of resources that name no image: that of a variable of the environment, else the
// fallback, which may be empty. It is read once: an operator that starts with another image replaces the pods.
func DefaultImage(variable, fallback string) (string, error) {
	image := cmp.Or(os.Getenv(variable), fallback)
	if image == "" {
		return "", nil
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return "", fmt.Errorf("%s is %q: %w", variable, image, err)
	}
	return image, nil
}

// WithoutHTTP2 makes a server speak HTTP/1.1 only. One HTTP/2 connection carries many requests, which attackers
// have used to overload servers (CVE-2023-44487, CVE-2023-39325); no client here needs HTTP/2.
func WithoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

// An Operator has the settings that differ between the programs.
type Operator struct {
	// Name is the name of the program and of its lease; logs of the API server and managed fields show it.
	Name string
	// Scheme knows all types that the operator uses.
	Scheme *runtime.Scheme
	// Kind must be known to the cluster.
	Kind schema.GroupVersionKind
	// Transform trims the objects in the cache, beside managed fields.
	Transform toolscache.TransformFunc
	// Webhooks is the server for admission requests, nil without webhooks.
	Webhooks webhook.Server
}

// NewManager returns a manager that works as the options say on the cluster of --kubeconfig, KUBECONFIG, the
// pod, or ~/.kube/config. It returns an error that names the fix when an option is invalid, when the API server
// cannot be reached, or when it does not know the operator's kind. The manager should run until ctx ends.
func NewManager(ctx context.Context, o Options, op Operator) (ctrl.Manager, error) {
	logger := hardening.Deduplicate(ctx, zap.New(zap.UseFlagOptions(&o.log)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's own lines
	if err := o.check(); err != nil {
		return nil, err
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	cfg.UserAgent = op.Name
	cfg.QPS = -1 // the API server has priority and fairness
	options := o.manager
	options.Scheme, options.WebhookServer, options.LeaderElectionID = op.Scheme, op.Webhooks, op.Name
	// A reconcile sees the writes of the previous one, even when the watch is a moment behind.
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	options.Cache = CacheOptions(o.Namespaces, op.Transform)
	options.GracefulShutdownTimeout = new(drainTimeout)
	// The next leader need not wait until the lease expires. This is safe only because the program ends
	// right after the manager.
	options.LeaderElectionReleaseOnCancel = true
	options.Metrics.TLSOpts = []func(*tls.Config){WithoutHTTP2}
	if options.Metrics.SecureServing {
		// The manager asks the API server which user a token belongs to, and whether that user may get /metrics.
		// config/rbac has the roles for both.
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	_, err = mgr.GetRESTMapper().RESTMapping(op.Kind.GroupKind(), op.Kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster at %s does not know the kind %s: install the CRD first (make install)",
			cfg.Host, op.Kind.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the API server %s for the kind %s: %w", cfg.Host, op.Kind.Kind, err)
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
		if err != nil {
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

// NameOf returns the metadata that identifies an object, its version and its owners. A cache keeps only this of an
// object that no resource owns.
func NameOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences()}
}

// hasSynced returns a check that fails until the caches have synced.
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

// Run starts a manager and waits for its end. When ctx ends, it does not wait for a manager whose cache never synced,
// for example without a permission: this manager does not notice that it should stop, and has no work to finish.
func Run(ctx context.Context, mgr ctrl.Manager) error {
	ended := make(chan error, 1)
	starting, cancel := context.WithCancel(ctx)
	go func() { defer cancel(); ended <- mgr.Start(ctx) }()
	if mgr.GetCache().WaitForCacheSync(starting) || ctx.Err() == nil {
		return <-ended
	}
	return nil
}
