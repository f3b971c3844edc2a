// Package suite runs checks against an operator: a check is an experiment in a separate namespace, and ends with a
// verdict and, when it failed, with evidence.
package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
)

// A Verdict is how a check ended.
type Verdict string

// Verdicts.
const (
	Passed Verdict = "passed"
	Failed Verdict = "failed"
	// Skipped checks do not apply to the implementation, or cannot run here; the reason explains it.
	Skipped Verdict = "skipped"
)

// An Outcome is the result of a check of one implementation.
type Outcome struct {
	// Check is the ID of the check, Title its expectation.
	Check string `json:"check"`
	Title string `json:"title"`
	// Group is the family of the check: a behaviour of MyWeb ("5"), a row of the fault catalogue ("17").
	Group string `json:"group"`
	// Needs are properties that a program must have for the check to apply.
	Needs   []Need  `json:"needs,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Expected is set on a failure that the list of implementations expects.
	Expected bool `json:"expected,omitempty"`
	// Reason is one line: the difference, or why the check was skipped.
	Reason string `json:"reason,omitempty"`
	// Evidence has details: requests, status, the operator's last lines.
	Evidence []string `json:"evidence,omitempty"`
	// Took is the duration of the check.
	Took time.Duration `json:"took"`
	// Namespace is the check's own namespace. At and End are numbers in the ledger: of the difference, and of the
	// check's end.
	Namespace string `json:"-"`
	At        int    `json:"-"`
	End       int    `json:"-"`
}

// Print writes an outcome: one line, and below it the reason and the evidence of a failure.
func (o Outcome) Print(w io.Writer) {
	if o.Expected {
		Line(w, fmt.Sprintf("%s  %-32s", o.Verdict, o.Check), "as operators.yaml lists it: "+o.Title)
		return
	}
	Line(w, fmt.Sprintf("%s  %-32s", o.Verdict, o.Check), fmt.Sprintf("%s (%.1f s)", o.Title, o.Took.Seconds()))
	if o.Reason != "" {
		fmt.Fprint(w, Indented("          ", o.Reason))
	}
	for _, line := range o.Evidence {
		fmt.Fprint(w, Indented("          | ", line))
	}
}

// Line writes a line that begins with a head. It wraps a long text below itself.
func Line(w io.Writer, head, text string) {
	head = "  " + head + " "
	lines := strings.TrimPrefix(Indented(strings.Repeat(" ", len(head)), text), strings.Repeat(" ", len(head)))
	fmt.Fprint(w, head, lines)
}

// columns is the width of the output.
const columns = 100

// Indented wraps a text and puts a margin before each of its lines.
func Indented(margin, text string) (all string) {
	for line := range strings.SplitSeq(wordwrap.WrapString(text, uint(columns-len(margin))), "\n") {
		all += margin + line + "\n"
	}
	return all
}

// compared compares an outcome with the list of checks that an implementation is known to fail: an unlisted failure
// and a listed pass are both errors.
func (o Outcome) compared(fails []string) Outcome {
	if !slices.Contains(fails, o.Check) {
		return o
	}
	switch o.Verdict {
	case Failed:
		o.Expected = true
	case Passed:
		o.Verdict, o.Reason = Failed, "it passed, but operators.yaml lists it as a failure: take it off the list"
	}
	return o
}

// Unexpected returns how many outcomes are failures that the list of implementations does not expect.
func Unexpected(outcomes []Outcome) (n int) {
	for _, o := range outcomes {
		if o.Verdict == Failed && !o.Expected {
			n++
		}
	}
	return n
}

// Count returns how many outcomes have a verdict.
func Count(outcomes []Outcome, v Verdict) (n int) {
	for _, o := range outcomes {
		if o.Verdict == v {
			n++
		}
	}
	return n
}
