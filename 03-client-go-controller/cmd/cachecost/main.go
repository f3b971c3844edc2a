// Command cachecost prints what the controller's caches cost among many foreign objects.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/operator-workshop/03-client-go-controller/internal/cachecost"
	"example.com/operator-workshop/03-client-go-controller/internal/operator"
)

func main() {
	var o cachecost.Options
	flag.IntVar(&o.Foreign, "foreign", 100, "ConfigMaps that belong to no MyWeb")
	flag.IntVar(&o.Size, "size", 500_000, "bytes in each of them, at most 1000000")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := operator.Config(operator.Options{})
	if err == nil {
		err = cachecost.Run(ctx, cfg, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cachecost:", err)
		os.Exit(1)
	}
}
