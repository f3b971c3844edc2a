package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A reporter reports the outcomes of the checks, to people or to programs.
type reporter interface {
	begin(command string, i implementation)
	outcome(o suite.Outcome)
	end(i implementation, outcomes []suite.Outcome, took time.Duration)
	close() error
}

// lines report to people while the checks run.
type lines struct{ w io.Writer }

func (l *lines) begin(command string, i implementation) {
	fmt.Fprintf(l.w, "== %s of %s %s\n", command, i.Name, i.Title)
}

func (l *lines) outcome(o suite.Outcome) { o.Print(l.w) }

func (l *lines) end(i implementation, outcomes []suite.Outcome, took time.Duration) {
	fmt.Fprintf(l.w, "-- %s: %s (%d s)\n", i.Name, tally(outcomes), int(took.Seconds()))
}

func (l *lines) close() error { return nil }

// A document reports to programs: one JSON object, when all checks are done.
type document struct {
	w io.Writer

	Command         string          `json:"command"`
	Implementations []checkedOutput `json:"implementations"`
}

type checkedOutput struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Passed  int           `json:"passed"`
	Failed  int           `json:"failed"`
	Skipped int           `json:"skipped"`
	Seconds float64       `json:"seconds"`
	Checks  []checkOutput `json:"checks"`
}

type checkOutput struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Verdict suite.Verdict `json:"verdict"`
	// Expected is a failure that the list of implementations expects.
	Expected bool         `json:"expected,omitempty"`
	Seconds  float64      `json:"seconds"`
	Needs    []suite.Need `json:"needs"`
	// Reason lists the differences, or is the reason why the check was skipped; the first line suffices for a short
	// message.
	Reason   string   `json:"reason,omitempty"`
	Evidence []string `json:"evidence"`
}

func (d *document) begin(command string, _ implementation) { d.Command = command }

func (d *document) outcome(suite.Outcome) {}

func (d *document) end(i implementation, outcomes []suite.Outcome, took time.Duration) {
	out := checkedOutput{Name: i.Name, Title: i.Title, Seconds: seconds(took), Checks: []checkOutput{},
		Passed: suite.Count(outcomes, suite.Passed), Failed: suite.Count(outcomes, suite.Failed),
		Skipped: suite.Count(outcomes, suite.Skipped)}
	for _, o := range outcomes {
		out.Checks = append(out.Checks, outputOf(o))
	}
	d.Implementations = append(d.Implementations, out)
}

func outputOf(o suite.Outcome) checkOutput {
	return checkOutput{Name: o.Check, Title: o.Title, Verdict: o.Verdict, Expected: o.Expected, Seconds: seconds(o.Took),
		Needs: append([]suite.Need{}, o.Needs...), Reason: o.Reason, Evidence: append([]string{}, o.Evidence...)}
}

func (d *document) close() error {
	e := json.NewEncoder(d.w)
	e.SetEscapeHTML(false) // it contains pages
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// seconds are rounded to milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
