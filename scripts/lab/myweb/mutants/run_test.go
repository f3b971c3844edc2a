package mutants

import (
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/mutant"
)

func TestCaughtForTheStatedReason(t *testing.T) {
	failed := outcome.Result{ID: "behaviour/05-edited-page", Verdict: outcome.Failed,
		What: "the page is restored: not within 20s: it is vandalism"}
	for name, c := range map[string]struct {
		because string
		outcome outcome.Result
		caught  bool
		says    string
	}{
		"for the stated reason": {"^the page is restored: not within", failed, true, "the page is restored"},
		"no reason is stated":   {"", failed, true, "the page is restored"},
		"for another reason":    {"the pod template", failed, false, "failed for another reason"},
		"the check passed":      {"", outcome.Result{ID: failed.ID, Verdict: outcome.Passed}, false, "passed"},
		"the check is not there": {"", outcome.Result{ID: "behaviour/05-edited-image", Verdict: outcome.Failed}, false,
			"there is no check"},
		"the check found nothing": {"", outcome.Result{ID: failed.ID, Verdict: outcome.Skipped, What: "no flag"}, false,
			"skipped no flag"},
	} {
		m := Mutant{Mutant: mutant.Mutant{CaughtBy: []string{failed.ID}}}
		if c.because != "" {
			m.Because = regexp.MustCompile(c.because)
		}
		r := Planted{Mutant: m, Outcomes: []outcome.Result{c.outcome}}
		if r.judge(); r.Caught != c.caught || !strings.Contains(r.Reason, c.says) {
			t.Errorf("%s: caught %v: %q", name, r.Caught, r.Reason)
		}
	}
}
