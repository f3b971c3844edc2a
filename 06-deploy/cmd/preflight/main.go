// Command preflight checks the cluster before manifests are applied, waits for the rollout after that, and checks
// for MyWebs before the CRD is removed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/preflight"
)

const usage = `usage:
  preflight check < MANIFESTS      may they be applied? Changes nothing
  preflight wait < MANIFESTS       until the operator is ready, at most two minutes
  preflight uninstall              may the CRD be removed?`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New(usage)
	}
	ctrl.SetLogger(logr.Discard())
	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster: %w: set KUBECONFIG", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if args[0] == "uninstall" {
		return preflight.Unused(ctx, cfg)
	}
	all, err := manifests.Read(in)
	if err != nil {
		return err
	}
	switch args[0] {
	case "check":
		return preflight.Check(ctx, cfg, all)
	case "wait":
		return preflight.Wait(ctx, cfg, all, out)
	}
	return fmt.Errorf("%q is no verb\n%s", args[0], usage)
}
