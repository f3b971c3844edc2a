// Command cachecost prints how much memory the controller's caches need among many unmanaged objects.
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
	flag.IntVar(&o.Unmanaged, "unmanaged", 100, "ConfigMaps that belong to no MyWeb")
	flag.IntVar(&o.Size, "size", 500_000, "bytes in each of them, at most 1000000")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "cachecost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o cachecost.Options) error {
	cfg, err := operator.Config(operator.Options{})
	if err != nil {
		return err
	}
	return cachecost.Run(ctx, cfg, o, os.Stdout)
}
