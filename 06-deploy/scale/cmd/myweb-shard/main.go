// Command myweb-shard is the MyWeb operator of chapter 04 for a part of the namespaces. Its cache has only the objects
// of its shard, and it works while it holds the shard's lease.
package main

import (
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	o := options{log: zap.Options{StacktraceLevel: zapcore.PanicLevel}}
	flag.StringVar(&o.shard, "shard", "0/1", "this shard and the number of shards: 0/3, 1/3, or 2/3")
	flag.StringVar(&o.bounds, "bounds", "",
		"first hash of each shard but 0, ascending, separated by commas (default: equal shards)")
	flag.StringVar(&o.ring, "ring", "", "in place of --shard: the ControllerRing that this replica joins")
	flag.StringVar(&o.replica, "replica", os.Getenv("POD_NAME"),
		"name of this replica (default: POD_NAME, else that of the machine)")
	flag.StringVar(&o.probes, "health-probe-bind-address", "127.0.0.1:8081", "host:port for /healthz and /readyz; 0 = off")
	flag.StringVar(&o.metrics, "metrics-bind-address", "0", "127.0.0.1:port for metrics; 0 = off")
	flag.BoolVar(&o.elect, "leader-elect", false, "work only while holding the lease of the shard")
	flag.StringVar(&o.namespace, "leader-election-namespace", os.Getenv("POD_NAMESPACE"), "namespace of the leases")
	flag.IntVar(&o.workers, "max-concurrent-reconciles", 4, "how many MyWebs are reconciled at once")
	o.log.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log)))
	cfg, err := config.GetConfig()
	if err == nil && o.replica == "" {
		o.replica, err = os.Hostname()
	}
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), cfg, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "myweb-shard:", err)
		os.Exit(1)
	}
}
