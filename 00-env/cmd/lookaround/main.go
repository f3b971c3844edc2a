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
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file; without it KUBECONFIG, ~/.kube/config, in-cluster")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "error: unexpected argument %q: the only flag is --kubeconfig FILE\n", flag.Arg(0))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *kubeconfig); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n"+
			"fix: `make up` in the root folder starts or repairs the local cluster, and prints how to use it\n", err)
		os.Exit(1)
	}
}

// run looks at the cluster and prints what it saw to w.
func run(ctx context.Context, w io.Writer, kubeconfig string) error {
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
