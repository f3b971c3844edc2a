package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/myweb/conformance"
	"example.com/operator-workshop/scripts/lab/myweb/faults"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func checksCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checks",
		Short: "List the checks; those of the crash points are enumerated from an operator's own writes",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, c := range slices.Concat(conformance.Checks(), faults.Checks()) {
				fmt.Printf("%-40s %s\n", c.ID, c.Title)
			}
			return nil
		},
	}
}

func conformanceCommand() *cobra.Command {
	return suiteCommand("conformance", "Check the 14 behaviours of MyWeb", listed(conformance.Checks))
}

func faultsCommand() *cobra.Command {
	return suiteCommand("faults", "Disturb the operator in every way of the catalogue", listed(faults.Checks))
}

// A chooser selects the checks to run.
type chooser func([]suite.Check) ([]suite.Check, error)

// A runner examines one implementation.
type runner func(ctx context.Context, l *lab, i implementation, choose chooser) ([]suite.Outcome, error)

// listed runs checks that are the same for every implementation.
func listed(checks func() []suite.Check) runner {
	return func(ctx context.Context, l *lab, i implementation, choose chooser) ([]suite.Outcome, error) {
		chosen, err := choose(checks())
		if err != nil {
			return nil, err
		}
		w, o, err := l.prepare(ctx, i)
		if err != nil {
			return nil, err
		}
		defer l.end(w)
		return suite.Run(ctx, w, o, chosen, l.print)
	}
}

// suiteCommand is a command that runs checks against implementations, one after the other.
func suiteCommand(use, short string, run runner) *cobra.Command {
	var impls, patterns string
	var asJSON bool
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	cmd.Flags().StringVar(&impls, "impl", "",
		"implementations: names of scripts/lab/operators.yaml or name=path, separated by commas (default: all)")
	cmd.Flags().StringVar(&patterns, "run", "",
		"only checks whose ID matches one of these regular expressions, separated by commas")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document in the end")
	choose := func(checks []suite.Check) ([]suite.Check, error) { return suite.Select(checks, patterns) }
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := open(cmd.Context(), impls)
		if err != nil {
			return err
		}
		defer l.close()
		l.kept = true
		var out reporter = &lines{cmd.OutOrStdout()}
		if asJSON {
			out = &document{w: cmd.OutOrStdout()}
		}
		l.print = out.outcome
		failed := false
		for _, i := range l.impls {
			out.begin(use, i)
			begin := time.Now()
			outcomes, err := run(cmd.Context(), l, i, choose)
			out.end(i, outcomes, time.Since(begin)) // also the results so far of an interrupted run
			if err != nil {
				return errors.Join(err, out.close())
			}
			failed = failed || suite.Unexpected(outcomes) > 0
		}
		if err := out.close(); err != nil || !failed {
			return err
		}
		return errFailed
	}
	return cmd
}

// tally counts verdicts. It counts failures that the list of implementations expects separately.
func tally(outcomes []suite.Outcome) string {
	failed, unexpected := suite.Count(outcomes, suite.Failed), suite.Unexpected(outcomes)
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", suite.Count(outcomes, suite.Passed), unexpected,
		suite.Count(outcomes, suite.Skipped))
	if failed > unexpected {
		text += fmt.Sprintf(", %d failed as expected", failed-unexpected)
	}
	return text
}

// words splits a list at its commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
