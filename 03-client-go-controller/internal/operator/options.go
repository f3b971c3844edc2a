// Package operator puts the MyWeb controller together: flags, clients, caches, lease, probes, metrics.
package operator

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/go-logr/logr"
)

// Options are the flags of the program. Bind sets the defaults; the zero value is not useful.
type Options struct {
	// Kubeconfig is a file; empty means KUBECONFIG, then the cluster of the pod, then ~/.kube/config.
	Kubeconfig string
	// Metrics and Probes are host:port to listen on; "0" is off.
	Metrics, Probes string
	// LeaderElect makes the program work only while it holds a lease.
	LeaderElect bool
	// LeaderElectionNamespace is the namespace of the lease; empty means the pod's namespace.
	LeaderElectionNamespace string
	// Workers is how many MyWebs are handled at once.
	Workers int
	// LogLevel is debug, info, warn or error; LogFormat is json or text.
	LogLevel  slog.Level
	LogFormat string
}

// Bind adds the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig file (default: KUBECONFIG, then the cluster of the pod, then ~/.kube/config)")
	flags.StringVar(&o.Metrics, "metrics-bind-address", "0",
		"127.0.0.1:port for metrics, without encryption and authentication; 0 = off")
	flags.StringVar(&o.Probes, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false,
		"work only while holding a lease, so that several replicas can run")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the pod's own)")
	flags.IntVar(&o.Workers, "max-concurrent-reconciles", 4, "how many MyWebs are handled at once")
	flags.TextVar(&o.LogLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
}

// validate returns an error that names the first invalid flag.
func (o *Options) validate() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.Workers)
	case o.LogFormat != "json" && o.LogFormat != "text":
		return fmt.Errorf("--log-format is %q: it must be json or text", o.LogFormat)
	}
	host, _, err := net.SplitHostPort(o.Metrics)
	if o.Metrics != "0" && (err != nil || !net.ParseIP(host).IsLoopback()) {
		return fmt.Errorf("--metrics-bind-address is %q: it must be 0 or 127.0.0.1:port, "+
			"because metrics are served without encryption and authentication", o.Metrics)
	}
	return nil
}

// logger returns a logger with the level and the format of the flags.
func (o *Options) logger(w io.Writer) logr.Logger {
	options := &slog.HandlerOptions{Level: o.LogLevel}
	if o.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, options))
}
