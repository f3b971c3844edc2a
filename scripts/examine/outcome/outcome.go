// Package outcome has the result of a check. The lab, its examination of any operator, and the exercises share it.
package outcome

import (
	"math"
	"time"
)

// A Verdict is how a check ended.
type Verdict string

// Verdicts.
const (
	Passed Verdict = "passed"
	Failed Verdict = "failed"
	// Skipped checks do not apply to the program, or cannot run here; the reason explains it.
	Skipped Verdict = "skipped"
	// Late: the program did it, but only at its next resync.
	Late Verdict = "late"
)

// A Result is the result of a check of one program.
type Result struct {
	// Check names the check, Title is its expectation.
	Check string `json:"name"`
	Title string `json:"title"`
	// Group is the family of the check: a behaviour ("5"), a row of the catalogue of faults ("17").
	Group   string  `json:"group,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Expected is set on a failure that the list of implementations expects.
	Expected bool `json:"expected,omitempty"`
	// Seconds is the duration of the check.
	Seconds float64 `json:"seconds"`
	// Needs are properties that a program must have for the check to apply.
	Needs []string `json:"needs"`
	// Reason lists the differences, or is the reason why the check was skipped; the first line suffices for a short
	// message.
	Reason string `json:"reason,omitempty"`
	// Did is what a user did before the first difference, or the lab in the place of a user. Reaction is what the program
	// got and sent after it.
	Did      string `json:"did,omitempty"`
	Reaction string `json:"reaction,omitempty"`
	// Evidence has details: requests, status, the program's last lines.
	Evidence []string `json:"evidence"`
	// Requests has the numbers of the program's requests, by phase and kind, of a check that counts them.
	Requests map[string]map[string]int `json:"requests,omitempty"`
	// Memory is the resident set of the program and its children in bytes, of a check that reads it.
	Memory int64 `json:"memory,omitempty"`
	// Namespace is the check's own namespace in the ledger. At and End are numbers of records: of the difference, and of
	// the check's end.
	Namespace string `json:"namespace,omitempty"`
	At        int    `json:"at,omitempty"`
	End       int    `json:"end,omitempty"`
}

// Passed reports whether the check passed. A skipped check did not pass.
func (r Result) Passed() bool { return r.Verdict == Passed }

// Seconds is a duration in seconds, rounded to milliseconds.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// Count returns how many results have a verdict.
func Count(results []Result, v Verdict) (n int) {
	for _, r := range results {
		if r.Verdict == v {
			n++
		}
	}
	return n
}
