package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"example.com/operator-workshop/scripts/internal/outcome"
)

// A reporter reports the outcomes of the checks, to people or to programs.
type reporter interface {
	begin(command string, i implementation)
	outcome(o outcome.Result)
	end(i implementation, outcomes []outcome.Result, took time.Duration)
	close() error
}

// lines report to people while the checks run.
type lines struct{ w io.Writer }

func (l *lines) begin(command string, i implementation) {
	fmt.Fprintf(l.w, "== %s of %s %s\n", command, i.Name, i.Title)
}

func (l *lines) outcome(o outcome.Result) { o.Print(l.w, true) }

func (l *lines) end(i implementation, outcomes []outcome.Result, took time.Duration) {
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
	Name    string           `json:"name"`
	Title   string           `json:"title"`
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Skipped int              `json:"skipped"`
	Seconds float64          `json:"seconds"`
	Checks  []outcome.Result `json:"checks"`
}

func (d *document) begin(command string, _ implementation) { d.Command = command }

func (d *document) outcome(outcome.Result) {}

func (d *document) end(i implementation, outcomes []outcome.Result, took time.Duration) {
	out := checkedOutput{Name: i.Name, Title: i.Title, Seconds: outcome.Seconds(took),
		Checks: append([]outcome.Result{}, outcomes...),
		Passed: outcome.Count(outcomes, outcome.Passed), Failed: outcome.Count(outcomes, outcome.Failed),
		Skipped: outcome.Count(outcomes, outcome.Skipped)}
	d.Implementations = append(d.Implementations, out)
}

func (d *document) close() error {
	e := json.NewEncoder(d.w)
	e.SetEscapeHTML(false) // it contains pages
	e.SetIndent("", "  ")
	return e.Encode(d)
}
