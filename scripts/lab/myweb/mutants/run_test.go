package mutants

import (
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/mutant"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func TestCaughtForTheStatedReason(t *testing.T) {
	failed := suite.Outcome{Check: "behaviour/05-edited-page", Verdict: suite.Failed,
		Reason: "the page is restored: not within 20s: it is vandalism"}
	for name, c := range map[string]struct {
		because string
		outcome suite.Outcome
		caught  bool
		says    string
	}{
		"for the stated reason": {"^the page is restored: not within", failed, true, "the page is restored"},
		"no reason is stated":   {"", failed, true, "the page is restored"},
		"for another reason":    {"the pod template", failed, false, "failed for another reason"},
		"the check passed":      {"", suite.Outcome{Check: failed.Check, Verdict: suite.Passed}, false, "passed"},
		"the check is not there": {"", suite.Outcome{Check: "behaviour/05-edited-image", Verdict: suite.Failed}, false,
			"there is no check"},
		"the check found nothing": {"", suite.Outcome{Check: failed.Check, Verdict: suite.Skipped, Reason: "no flag"}, false,
			"skipped no flag"},
	} {
		m := Mutant{Mutant: mutant.Mutant{CaughtBy: []string{failed.Check}}}
		if c.because != "" {
			m.Because = regexp.MustCompile(c.because)
		}
		r := Result{Mutant: m, Outcomes: []suite.Outcome{c.outcome}}
		if r.judge(); r.Caught != c.caught || !strings.Contains(r.Reason, c.says) {
			t.Errorf("%s: caught %v: %q", name, r.Caught, r.Reason)
		}
	}
}
