// Package operator puts the MyWeb controller together: flags, clients, caches, lease, probes, metrics.
package operator

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
)

// Options say how the program runs. The zero value is not useful: Bind gives the defaults.
type Options struct {
	// Kubeconfig is a file; empty means KUBECONFIG, then the cluster around the pod, then ~/.kube/config.
	Kubeconfig string
	// QPS is how many requests a second the program sends at most, 0 is no limit; Burst is how many it
	// may send at once before that counts.
	QPS   float64
	Burst int
	// Metrics and Probes are host:port to listen on; "0" is off.
	Metrics, Probes string
	// LeaderElect makes the program work only while it holds a lease.
	LeaderElect bool
	// LeaderElectionNamespace is where the lease lies; empty means the pod's own namespace.
	LeaderElectionNamespace string
	// Workers is how many MyWebs are handled at once.
	Workers int
	// LogLevel is debug, info, warn or error; LogFormat is json or text.
	LogLevel  slog.Level
	LogFormat string
}

// Bind adds the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, then the cluster around the pod, then ~/.kube/config)")
	flags.Float64Var(&o.QPS, "kube-api-qps", 0, "requests a second to the API server; 0 = no limit, the API server sees to fairness itself")
	flags.IntVar(&o.Burst, "kube-api-burst", 30, "requests at once before --kube-api-qps counts")
	flags.StringVar(&o.Metrics, "metrics-bind-address", "0", "127.0.0.1:port for metrics, without encryption and authentication; 0 = off")
	flags.StringVar(&o.Probes, "health-probe-bind-address", "127.0.0.1:8081", "host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's own)")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many MyWebs are handled at once")
	flags.TextVar(&o.LogLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
}

// check returns an error that names the first flag that cannot be.
func (o *Options) check() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	case o.QPS < 0:
		return fmt.Errorf("--kube-api-qps is %g: it must be 0, for no limit, or more", o.QPS)
	case o.QPS > 0 && o.Burst < 1:
		return fmt.Errorf("--kube-api-burst is %d: it must be at least 1", o.Burst)
	case o.LogFormat != "json" && o.LogFormat != "text":
		return fmt.Errorf("--log-format is %q: it must be json or text", o.LogFormat)
	}
	if host, _, err := net.SplitHostPort(o.Metrics); o.Metrics != "0" && (err != nil || !net.ParseIP(host).IsLoopback()) {
		return fmt.Errorf("--metrics-bind-address is %q: it must be 0 or 127.0.0.1:port, for nothing protects what is served there", o.Metrics)
	}
	return nil
}

// logger writes to w as the flags say.
func (o *Options) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.LogLevel}
	if o.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// listen opens an address that a flag names; nil is off.
func listen(name, address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w: choose another one, or 0 for none", name, err)
	}
	return l, nil
}

// podNamespace is where the pod around this program runs.
func podNamespace(read func(string) ([]byte, error)) (string, error) {
	data, err := read("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("--leader-elect outside a cluster needs --leader-election-namespace")
	}
	return strings.TrimSpace(string(data)), nil
}
