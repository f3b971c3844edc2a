package main

import (
	"encoding/json"
	"io"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// A document reports to programs: one JSON object, when all checks are done.
type document struct {
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

func (d *document) add(i implementation, outcomes []outcome.Result, took time.Duration) {
	out := checkedOutput{Name: i.Name, Title: i.Title, Seconds: outcome.Seconds(took),
		Checks: append([]outcome.Result{}, outcomes...),
		Passed: outcome.Count(outcomes, outcome.Passed), Failed: outcome.Count(outcomes, outcome.Failed),
		Skipped: outcome.Count(outcomes, outcome.Skipped)}
	d.Implementations = append(d.Implementations, out)
}

func (d *document) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it contains pages
	e.SetIndent("", "  ")
	return e.Encode(d)
}
