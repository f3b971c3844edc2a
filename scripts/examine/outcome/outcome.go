// Package outcome has the result of a check. The lab, its examination of any operator, and the exercises share it.
package outcome

import (
	"fmt"
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

// A Severity is the cost of a failure.
type Severity string

// A Result is the result of a check of one program: of an experiment of examine, or of a check of the lab.
type Result struct {
	// ID names the check, and is the same in each run: "behaviour/05-edited-page".
	ID string `json:"id"`
	// Experiment is the section of the report: an experiment ("drift"), a behaviour ("behaviour/5"), a row of the
	// catalogue of faults ("fault/17").
	Experiment string `json:"experiment"`
	// Title is the expectation that the check has.
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	// The verdict rests on an observation, which this text has: it lists the differences, or is the reason why the check
	// was skipped. The first line suffices for a short message.
	What string `json:"what"`
	// Evidence has details, one a line: requests, differences between objects, the program's last lines.
	Evidence []string `json:"evidence,omitempty"`
	// Severity is set on failed and late findings of examine; Cause is the likely cause by the pattern of the
	// observation, and Others is how other operators solve it.
	Severity Severity `json:"severity,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	Others   string   `json:"others,omitempty"`
	// Accepted is why a failure is accepted: the reason from the baseline or from the list of implementations.
	Accepted string `json:"accepted,omitempty"`
	// File and Line are the place of the manifest or CRD that the result is about, if it is about one.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Left is how many parts of an experiment were not tried, of Of parts. Without Left, Of parts were tried.
	Left int `json:"left,omitempty"`
	Of   int `json:"of,omitempty"`
	// Needs are properties that a program must have for the check to apply.
	Needs []string `json:"needs,omitempty"`
	// Did is what a user did before the first difference, or the lab in the place of a user. Reaction is what the program
	// got and sent after it.
	Did      string `json:"did,omitempty"`
	Reaction string `json:"reaction,omitempty"`
	// Requests has the numbers of the program's requests, by phase and kind, of a check that counts them.
	Requests map[string]map[string]int `json:"requests,omitempty"`
	// Memory is the resident set of the program and its children in bytes, of a check that reads it.
	Memory int64 `json:"memory,omitempty"`
	// Namespace is the check's own namespace in the ledger. At and End are numbers of records: of the difference, and of
	// the check's end.
	Namespace string `json:"namespace,omitempty"`
	At        int    `json:"at,omitempty"`
	End       int    `json:"end,omitempty"`
	// Took is the duration of the check.
	Took time.Duration `json:"took"`
}

// Passed reports whether the check passed. A skipped check did not pass.
func (r Result) Passed() bool { return r.Verdict == Passed }

// Timed returns a title with the time of the check. A result that another check has found took none.
func (r Result) Timed(title string) string {
	if r.Took == 0 {
		return title
	}
	return fmt.Sprintf("%s (%.1f s)", title, r.Took.Seconds())
}

// Count returns how many results have a verdict.
func Count(results []Result, v Verdict) (n int) {
	for _, r := range results {
		if r.Verdict == v {
			n++
		}
	}
	return n
}
