package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/lab/conformance"
	"example.com/operator-workshop/scripts/internal/lab/suite"
)

// allChecks are the checks of every family that suite.Run runs.
func allChecks() []suite.Check { return conformance.Checks() }

func checksCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checks",
		Short: "List the checks",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, c := range allChecks() {
				fmt.Printf("%-40s %s\n", c.ID, c.Title)
			}
			return nil
		},
	}
}

func conformanceCommand() *cobra.Command {
	return suiteCommand("conformance", "Check the 14 behaviours of MyWeb", conformance.Checks)
}

// suiteCommand is a verb that runs checks against implementations.
func suiteCommand(use, short string, checks func() []suite.Check) *cobra.Command {
	var impls, pattern string
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	cmd.Flags().StringVar(&impls, "impl", "", "implementations: names of scripts/lab.yaml or name=path, separated by commas (default: all)")
	cmd.Flags().StringVar(&pattern, "run", "", "only checks whose ID matches this regular expression")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		chosen, err := suite.Select(checks(), pattern)
		if err != nil {
			return err
		}
		l, err := open(cmd.Context(), impls)
		if err != nil {
			return err
		}
		defer l.close()
		failed := false
		for _, i := range l.impls {
			begin := time.Now()
			fmt.Printf("== %s of %s %s\n", use, i.Name, i.Title)
			outcomes, err := l.run(cmd.Context(), i, chosen)
			if err != nil {
				return err
			}
			fmt.Printf("-- %s: %d passed, %d failed, %d skipped (%d s)\n", i.Name, suite.Count(outcomes, suite.Passed),
				suite.Count(outcomes, suite.Failed), suite.Count(outcomes, suite.Skipped), int(time.Since(begin).Seconds()))
			failed = failed || suite.Count(outcomes, suite.Failed) > 0
		}
		if failed {
			return errFailed
		}
		return nil
	}
	return cmd
}

// words splits a list with commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// run examines one implementation in a world of its own, and prints each outcome.
func (l *lab) run(ctx context.Context, i implementation, checks []suite.Check) ([]suite.Outcome, error) {
	w, err := l.world(ctx)
	if err != nil {
		return nil, err
	}
	defer l.end(w)
	operator, err := suite.NewOperator(ctx, w, i, "lab-"+i.Name)
	if err != nil {
		return nil, err
	}
	return suite.Run(ctx, w, operator, checks, func(o suite.Outcome) { o.Print(os.Stdout) })
}
