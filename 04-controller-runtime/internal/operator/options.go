package operator

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
)

// Options say how the operator runs. The zero value is not useful: Bind gives the defaults.
type Options struct {
	// Manager are the options of the manager that flags set.
	Manager ctrl.Options
	// Namespaces are the namespaces that the operator serves, all when the list is empty.
	Namespaces []string
	// Webhooks say whether and where the admission webhooks are served.
	Webhooks webhook.Options
	// Log is the logger's configuration.
	Log zap.Options
}

// Bind adds the flags. --kubeconfig is bound by controller-runtime.
func (o *Options) Bind(flags *flag.FlagSet) {
	setNamespaces := func(names string) error {
		o.Namespaces = strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
		return nil
	}
	_ = setNamespaces(os.Getenv("WATCH_NAMESPACE"))
	m := &o.Manager
	flags.Func("namespaces", "namespaces to serve, separated by commas; empty = all (default: WATCH_NAMESPACE)",
		setNamespaces)
	flags.StringVar(&m.Metrics.BindAddress, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.BoolVar(&m.Metrics.SecureServing, "metrics-secure", true,
		"serve metrics over TLS, and only to users who may read them; without it, on 127.0.0.1 only")
	flags.StringVar(&m.Metrics.CertDir, "metrics-cert-dir", "",
		"folder with tls.crt and tls.key for metrics (default: a certificate made at the start)")
	flags.StringVar(&m.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&m.LeaderElection, "leader-elect", false, "work only while holding a lease, for several replicas")
	flags.StringVar(&m.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the pod's own)")
	flags.IntVar(&m.Controller.MaxConcurrentReconciles, "max-concurrent-reconciles", 4,
		"how many MyWebs are reconciled at once")
	o.Webhooks.Bind(flags)
	o.Log.StacktraceLevel = zapcore.PanicLevel // a returned error says where it comes from
	o.Log.BindFlags(flags)
}

// check returns an error that names the first invalid flag.
func (o *Options) check() error {
	for _, namespace := range o.Namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return fmt.Errorf("--namespaces names %q: %s", namespace, wrong[0])
		}
	}
	if n := o.Manager.Controller.MaxConcurrentReconciles; n < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", n)
	}
	address := o.Manager.Metrics.BindAddress
	host, _, err := net.SplitHostPort(address)
	local := err == nil && net.ParseIP(host).IsLoopback()
	if address != "0" && !o.Manager.Metrics.SecureServing && !local {
		return fmt.Errorf("--metrics-bind-address is %q: without --metrics-secure it must be 0 or 127.0.0.1:port, "+
			"because nothing protects that port", address)
	}
	return nil
}
