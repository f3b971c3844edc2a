package suite

import (
	"bytes"
	"strings"
	"testing"
)

func TestOutcomesFitTheScreen(t *testing.T) {
	long := strings.Repeat("a sentence that says what differed ", 20)
	o := Outcome{Check: "behaviour/05-edited-page", Title: "it is so", Verdict: Failed, Reason: long + "\nand more",
		Evidence: []string{long}}
	var out bytes.Buffer
	o.Print(&out)
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("wider than 100: %s", line)
		}
	}
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "and more") ||
		strings.Count(got, "a sentence") != 40 {
		t.Errorf("something is lost:\n%s", out.String())
	}
}

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
	var all []Outcome
	for _, o := range []Outcome{{Check: "fault/a", Verdict: Failed}, {Check: "fault/b", Verdict: Passed},
		{Check: "fault/c", Verdict: Failed}, {Check: "fault/d", Verdict: Passed}, {Check: "fault/b", Verdict: Skipped}} {
		all = append(all, o.compared(fails))
	}
	if o := all[0]; o.Verdict != Failed || !o.Expected {
		t.Errorf("a failure that is listed: %+v", o)
	}
	if o := all[1]; o.Verdict != Failed || o.Expected || !strings.Contains(o.Reason, "take it off the list") {
		t.Errorf("a check that is listed and passed: %+v", o)
	}
	if n := Unexpected(all); n != 2 {
		t.Errorf("%d unexpected failures, want the one that is not listed and the one that passed", n)
	}
}
