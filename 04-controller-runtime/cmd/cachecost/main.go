// Command cachecost prints what a cache costs by what it keeps.
package main

import (
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/operator-workshop/04-controller-runtime/internal/cachecost"
)

func main() {
	o := cachecost.Options{Own: []int{0, 1000, 5000}}
	flag.IntVar(&o.Unmanaged, "unmanaged", 300, "ConfigMaps that no MyWeb owns")
	flag.IntVar(&o.Size, "size", 500_000, "bytes in each of them, at most 1000000")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	cfg, err := config.GetConfig()
	if err == nil {
		err = cachecost.Run(ctrl.SetupSignalHandler(), cfg, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cachecost:", err)
		os.Exit(1)
	}
}
