package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
	"example.com/operator-workshop/scripts/lab/report"
)

func checksCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checks",
		Short: "List the checks; those of the crash points are enumerated from an operator's own writes",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, c := range checks.All() {
				fmt.Printf("%-40s %s\n", c.ID, c.Title)
			}
			return nil
		},
	}
}

// suiteCommands run behaviours, faults, and crash sequences, which are enumerated from the writes of each
// implementation.
func suiteCommands() []*cobra.Command {
	return []*cobra.Command{
		suiteCommand("conformance", "Check the 14 behaviours of MyWeb", checks.Behaviours),
		suiteCommand("faults", "Disturb the operator in every way of the catalogue", checks.Faults),
		suiteCommand("budget", "Count the requests of ten MyWebs, and compare with scripts/lab/myweb/budget.yaml", checks.Requests),
		suiteCommand("crash", "Kill the operator after every write, in every combination", nil),
	}
}

// suiteCommand is a command that runs checks against implementations, one after the other. Without a list of checks it
// runs crash sequences.
func suiteCommand(use, short string, list func() []suite.Check) *cobra.Command {
	var impls, patterns string
	var asJSON bool
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	implFlag(cmd, &impls)
	cmd.Flags().StringVar(&patterns, "run", "",
		"only checks whose ID matches one of these regular expressions, separated by commas")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the reports as one JSON document in the end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p := part{crashes: list == nil}
		if list != nil { // a wrong pattern is an error before a cluster starts
			var err error
			if p.checks, err = suite.Select(list(), patterns); err != nil {
				return err
			}
		}
		l, err := open(cmd.Context(), impls)
		if err != nil {
			return err
		}
		defer l.close()
		l.kept = true
		lines, reports := cmd.OutOrStdout(), []*examine.Report{}
		if asJSON {
			lines = io.Discard
		}
		for _, i := range l.impls {
			fmt.Fprintf(lines, "== %s of %s %s\n", use, i.Name, i.Title)
			begin := time.Now()
			outcomes, failure := l.rounds(cmd.Context(), i, &options{run: patterns, rounds: 1}, p,
				func(o outcome.Result) { o.Print(lines, true) })
			reports = append(reports, report.Of(i, outcomes, time.Since(begin))) // also the results so far of an interrupted run
			fmt.Fprintf(lines, "-- %s: %s (%d s)\n", i.Name, tally(outcomes), int(time.Since(begin).Seconds()))
			if failure != nil {
				err = failure
				break
			}
			if suite.Unexpected(outcomes) > 0 {
				err = errFailed
			}
		}
		if asJSON {
			err = errors.Join(err, printJSON(cmd.OutOrStdout(), reports))
		}
		return err
	}
	return cmd
}

// printJSON prints a document for programs.
func printJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it contains pages
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// tally counts verdicts. It counts failures that the list of implementations expects separately.
func tally(outcomes []outcome.Result) string {
	failed, unexpected := outcome.Count(outcomes, outcome.Failed), suite.Unexpected(outcomes)
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", outcome.Count(outcomes, outcome.Passed), unexpected,
		outcome.Count(outcomes, outcome.Skipped))
	if failed > unexpected {
		text += fmt.Sprintf(", %d failed as expected", failed-unexpected)
	}
	return text
}

// words splits a list at its commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
