package exercise

import (
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/outcome"
)

func TestTheScore(t *testing.T) {
	verdict := func(check string, verdict outcome.Verdict, reason string) Verdict {
		return Verdict{Check: "behaviour/" + check, Title: "title of " + check, Verdict: verdict, Reason: reason}
	}
	for name, test := range map[string]struct {
		verdicts []Verdict
		says     string
		not      string
	}{
		"some": {[]Verdict{verdict("01-a", "passed", ""), verdict("01-b", "passed", ""), verdict("02-a", "failed", "no")},
			"  02   0 of  1 checks\n          behaviour/02-a: title of 02-a\n1 of 2 behaviours", "No check"},
		"skipped is not shown": {[]Verdict{verdict("14-a", "skipped", "no flag"), verdict("01-a", "passed", "")},
			"1 of 2 behaviours", "No check"},
		"a program that does not start": {[]Verdict{verdict("01-a", "failed", "it ended"), verdict("02-a", "failed", "it ended")},
			"No check could begin: it ended\n0 of 2 behaviours", "title of"},
	} {
		var out strings.Builder
		Report{Own: test.verdicts}.Print(&out, Capstone, false)
		if !strings.Contains(out.String(), test.says) || strings.Contains(out.String(), test.not) {
			t.Errorf("%s:\n%s", name, &out)
		}
	}
}
