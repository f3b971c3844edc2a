// Package program has the parts of main that are the same in every operator: flags, a manager with metrics, probes and
// a lease, and errors that say what to do. The scaffold writes this code into cmd/main.go of each project.
package program

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// namespaceFile names the namespace of the pod, in a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Options are the settings of an operator. The zero value is not useful: Bind sets the defaults.
type Options struct {
	// Namespaces are the ones that the operator serves, all when there are none.
	Namespaces []string
	// Metrics and Probes are host:port to listen on; "0" is off.
	Metrics, Probes string
	// MetricsSecure serves metrics over TLS, to those whom the API server knows and lets read them.
	MetricsSecure bool
	// MetricsCertPath, MetricsCertName and MetricsCertKey are the folder and the files of the certificate
	// for metrics; an empty path means one that is made at the start.
	MetricsCertPath, MetricsCertName, MetricsCertKey string
	// LeaderElect makes the operator work only while it holds a lease.
	LeaderElect bool
	// LeaderElectionNamespace is the namespace of the lease; empty means the pod's own namespace.
	LeaderElectionNamespace string
	// Workers is how many resources are handled at once.
	Workers int
	// Log is the logger's configuration.
	Log zap.Options
}

// Bind adds the flags, most of them by the names that the scaffold gives them. --kubeconfig is bound by
// controller-runtime. WATCH_NAMESPACE is read: namespaces separated by commas, empty or unset for all.
func (o *Options) Bind(flags *flag.FlagSet) {
	o.Namespaces = namespaces(os.Getenv("WATCH_NAMESPACE"))
	flags.StringVar(&o.Metrics, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true,
		"serve metrics over TLS, and only to users who may read them; without it, on 127.0.0.1 only")
	flags.StringVar(&o.MetricsCertPath, "metrics-cert-path", "",
		"folder with a certificate for metrics (default: made at the start)")
	flags.StringVar(&o.MetricsCertName, "metrics-cert-name", "tls.crt", "file of the certificate in --metrics-cert-path")
	flags.StringVar(&o.MetricsCertKey, "metrics-cert-key", "tls.key", "file of the key in --metrics-cert-path")
	flags.StringVar(&o.Probes, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false,
		"work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the pod's own)")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many resources are handled at once")
	o.Log.StacktraceLevel = zapcore.PanicLevel // a returned error says where it comes from
	o.Log.BindFlags(flags)
}

// namespaces reads a list in the format of WATCH_NAMESPACE.
func namespaces(text string) []string {
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(names)
	return slices.Compact(names)
}

// check returns an error that names the first invalid flag.
func (o *Options) check() error {
	for _, namespace := range o.Namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return fmt.Errorf("WATCH_NAMESPACE names %q: %s", namespace, wrong[0])
		}
	}
	if o.Workers < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	}
	if _, err := os.Stat(namespaceFile); o.LeaderElect && o.LeaderElectionNamespace == "" && err != nil {
		return errors.New("--leader-elect needs --leader-election-namespace outside a cluster")
	}
	host, _, err := net.SplitHostPort(o.Metrics)
	if o.Metrics != "0" && !o.MetricsSecure && (err != nil || !net.ParseIP(host).IsLoopback()) {
		return fmt.Errorf("--metrics-bind-address is %q: without --metrics-secure it must be 0 or 127.0.0.1:port, "+
			"for nothing protects what is served there", o.Metrics)
	}
	addresses := map[string]string{"health-probe-bind-address": o.Probes, "metrics-bind-address": o.Metrics}
	for name, address := range addresses {
		if err := portFree(address); err != nil {
			return fmt.Errorf("--%s: %w: choose another one, or 0 for none", name, err)
		}
	}
	return nil
}

// portFree reports a port in use early and with the flag's name. The manager would report it late.
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

// metrics returns the options of the metrics server. With TLS, the API server is asked which user a token belongs to,
// and whether that user may get /metrics. config/rbac has the roles for both.
func (o *Options) metrics() server.Options {
	options := server.Options{
		BindAddress:   o.Metrics,
		SecureServing: o.MetricsSecure,
		CertDir:       o.MetricsCertPath, CertName: o.MetricsCertName, KeyName: o.MetricsCertKey,
		TLSOpts: []func(*tls.Config){WithoutHTTP2},
	}
	if o.MetricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

// WithoutHTTP2 makes a server speak HTTP/1.1 only. One HTTP/2 connection carries many requests, and has
// been used to keep servers busy (CVE-2023-44487, CVE-2023-39325); nobody here needs it.
func WithoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

// EnvBool returns the Boolean value of an environment variable, or a default when it is not set.
func EnvBool(name string, otherwise bool) (bool, error) {
	text := os.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s is %q: it must be true or false", name, text)
	}
	return value, nil
}
