// Command lab examines MyWeb operators from outside: it runs them as processes against a local cluster, through a
// proxy that records and disturbs their requests.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := command().ExecuteContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// errFailed ends the program when all messages were already printed.
var errFailed = errors.New("not every check passed")

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Examine MyWeb operators: make compare, make conformance and others call it",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(suiteCommands()...)
	root.AddCommand(checksCommand(), mutantsCommand(), fastCommand())
	root.AddCommand(compareCommand(), waysCommand(), judgeCommand(), upCommand(), downCommand())
	return root
}
