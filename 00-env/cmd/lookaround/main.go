// Command lookaround explains the parts of the cluster of the current kubeconfig.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/operator-workshop/00-env/internal/lookaround"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file; without it KUBECONFIG, in-cluster, ~/.kube/config")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *kubeconfig, flag.Args()...); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run looks at the cluster and prints what it saw to w.
func run(ctx context.Context, w io.Writer, kubeconfig string, extra ...string) error {
	if len(extra) > 0 {
		return fmt.Errorf("unexpected argument %q: the only flag is --kubeconfig FILE", extra[0])
	}
	cfg, err := lookaround.Config(kubeconfig)
	if err != nil {
		return err
	}
	facts, err := lookaround.Look(ctx, cfg)
	if err != nil {
		return err
	}
	return lookaround.Print(w, facts)
}
