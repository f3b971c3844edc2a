package suite

import (
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/outcome"
)

func TestSelect(t *testing.T) {
	checks := []Check{{ID: "behaviour/01-a", Fast: true}, {ID: "behaviour/02-b"}}
	if got, err := Select(checks, "02"); err != nil || len(got) != 1 || got[0].ID != "behaviour/02-b" {
		t.Errorf("select: %v, %v", got, err)
	}
	if _, err := Select(checks, "03"); err == nil || !strings.Contains(err.Error(), "no check matches") {
		t.Errorf("nothing selected: %v", err)
	}
	if _, err := Select(checks, "("); err == nil || !strings.Contains(err.Error(), "--run") {
		t.Errorf("a bad pattern: %v", err)
	}
	if got := Fast(checks); len(got) != 1 {
		t.Errorf("fast: %v", got)
	}
}

func TestExpectedFailuresAreComparedBothWays(t *testing.T) {
	fails := []string{"fault/a", "fault/b"}
	var all []outcome.Result
	for _, o := range []outcome.Result{
		{Check: "fault/a", Verdict: outcome.Failed}, {Check: "fault/b", Verdict: outcome.Passed},
		{Check: "fault/c", Verdict: outcome.Failed}, {Check: "fault/d", Verdict: outcome.Passed},
		{Check: "fault/b", Verdict: outcome.Skipped}} {
		all = append(all, compared(o, fails))
	}
	if o := all[0]; o.Verdict != outcome.Failed || !o.Expected {
		t.Errorf("a failure that is listed: %+v", o)
	}
	if o := all[1]; o.Verdict != outcome.Failed || o.Expected || !strings.Contains(o.Reason, "take it off the list") {
		t.Errorf("a check that is listed and passed: %+v", o)
	}
	if n := Unexpected(all); n != 2 {
		t.Errorf("%d unexpected failures, want the one that is not listed and the one that passed", n)
	}
}
