// Command steps runs one step of the page: steps events, steps queue, steps child, steps children.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/operator-workshop/03-client-go-controller/internal/operator"
	"example.com/operator-workshop/03-client-go-controller/internal/steps"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one step:\n%s", steps.Usage())
	}
	cfg, err := operator.Config(operator.Options{})
	if err != nil {
		return err
	}
	return steps.Run(ctx, cfg, args[0], os.Stdout)
}
