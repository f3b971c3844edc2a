// Package suite runs checks against an operator: a check is an experiment in a separate namespace, and ends with a
// verdict and, when it failed, with evidence.
package suite

import (
	"slices"

	"example.com/operator-workshop/scripts/internal/outcome"
)

// An Outcome is the result of a check.
type Outcome = outcome.Result

// A Verdict is how a check ended.
type Verdict = outcome.Verdict

// Verdicts.
const (
	Passed  = outcome.Passed
	Failed  = outcome.Failed
	Skipped = outcome.Skipped
)

// compared compares an outcome with the list of checks that an implementation is known to fail: an unlisted failure
// and a listed pass are both errors.
func compared(o Outcome, fails []string) Outcome {
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
func Count(outcomes []Outcome, v Verdict) int { return outcome.Count(outcomes, v) }
