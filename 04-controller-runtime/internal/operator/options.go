package operator

import (
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
)

// Options say how the operator runs. The zero value is not useful: Bind gives the defaults.
type Options struct {
	// Namespaces are the ones that the operator serves, all when there are none.
	Namespaces namespaces
	// QPS is how many requests a second the program sends at most, 0 is no limit; Burst is how many it
	// may send at once before that counts.
	QPS   float64
	Burst int
	// Metrics and Probes are host:port to listen on; "0" is off.
	Metrics, Probes string
	// MetricsSecure serves metrics over TLS, to those whom the API server knows and lets read them.
	MetricsSecure bool
	// MetricsCertDir holds tls.crt and tls.key for metrics; empty means a certificate made at the start.
	MetricsCertDir string
	// LeaderElect makes the operator work only while it holds a lease.
	LeaderElect bool
	// LeaderElectionNamespace is where the lease lies; empty means the pod's own namespace.
	LeaderElectionNamespace string
	// Workers is how many MyWebs are handled at once.
	Workers int
	// Webhooks say whether and where the admission webhooks are served.
	Webhooks webhook.Options
	// Log is the logger's configuration.
	Log zap.Options
}

// Bind adds the flags. --kubeconfig is bound by controller-runtime.
func (o *Options) Bind(flags *flag.FlagSet) {
	o.Namespaces = parseNamespaces(os.Getenv("WATCH_NAMESPACE"))
	flags.Var(&o.Namespaces, "namespaces", "namespaces to serve, separated by commas; empty = all (default: WATCH_NAMESPACE)")
	flags.Float64Var(&o.QPS, "kube-api-qps", 0, "requests a second to the API server; 0 = no limit, the API server sees to fairness itself")
	flags.IntVar(&o.Burst, "kube-api-burst", 30, "requests at once before --kube-api-qps counts")
	flags.StringVar(&o.Metrics, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics over TLS, and only to who may read them; without it, on 127.0.0.1 only")
	flags.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key for metrics (default: a certificate made at the start)")
	flags.StringVar(&o.Probes, "health-probe-bind-address", "127.0.0.1:8081", "host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's own)")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many MyWebs are handled at once")
	o.Webhooks.Bind(flags)
	o.Log.StacktraceLevel = zapcore.PanicLevel // a returned error says where it comes from
	o.Log.BindFlags(flags)
}

// check returns an error that names the first flag that cannot be.
func (o *Options) check() error {
	for _, namespace := range o.Namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return fmt.Errorf("--namespaces names %q: %s", namespace, wrong[0])
		}
	}
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	case o.QPS < 0:
		return fmt.Errorf("--kube-api-qps is %g: it must be 0, for no limit, or more", o.QPS)
	case o.QPS > 0 && o.Burst < 1:
		return fmt.Errorf("--kube-api-burst is %d: it must be at least 1", o.Burst)
	}
	if host, _, err := net.SplitHostPort(o.Metrics); o.Metrics != "0" && !o.MetricsSecure && (err != nil || !net.ParseIP(host).IsLoopback()) {
		return fmt.Errorf("--metrics-bind-address is %q: without --metrics-secure it must be 0 or 127.0.0.1:port, for nothing protects what is served there", o.Metrics)
	}
	for name, address := range map[string]string{"health-probe-bind-address": o.Probes, "metrics-bind-address": o.Metrics} {
		if err := portFree(address); err != nil {
			return fmt.Errorf("--%s: %w: choose another one, or 0 for none", name, err)
		}
	}
	return nil
}

// portFree tells early, and by the flag's name, what the manager would tell late.
func portFree(address string) error {
	if address == "0" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// namespaces is a flag.Value: names separated by commas.
type namespaces []string

func parseNamespaces(text string) namespaces {
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(names)
	return slices.Compact(names)
}

// String implements flag.Value.
func (n *namespaces) String() string { return strings.Join(*n, ",") }

// Set implements flag.Value.
func (n *namespaces) Set(text string) error {
	*n = parseNamespaces(text)
	return nil
}
