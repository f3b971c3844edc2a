package outcome

import (
	"strings"
	"testing"
)

func TestLinesAreCutBetweenWords(t *testing.T) {
	word := strings.Repeat("ü", 48)
	var out strings.Builder
	Wrap(&out, "  | ", word+" "+word[2:]+" "+word+"\n\n"+word+","+word+word+word+" b\n")
	want := "  | " + word + " " + word[2:] + "\n  | " + word + "\n  |\n  | " + word + ",\n  | " + word + word + "\n  | " + word + "\n  | b\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// A checked program prints what it likes, and the API server repeats it in messages.
func TestATerminalObeysNoResult(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;title\a"
	var out strings.Builder
	Result{ID: evil, Title: evil, Verdict: "failed", What: evil + "\nand", Evidence: []string{evil},
		Requests: map[string]map[string]int{"restart": {"get " + evil: 2}, "steady state": {}}}.Print(&out, true)
	if text := out.String(); strings.ContainsAny(text, "\x1b\a") || strings.Count(text, `\x1b[2J\x1b]0;title\a`) != 5 ||
		!strings.Contains(text, "restart: 2 get ") || !strings.Contains(text, "steady state: no request") {
		t.Errorf("%q", text)
	}
}

func TestALogThatRepeatsItself(t *testing.T) {
	v := Result{ID: "c", Verdict: "failed", Evidence: []string{"PATCH web", "2026-11-22T19:35:51Z\tERROR\tno",
		"2026-11-22T19:35:52Z\tERROR\tno", "E1122 19:35:52.123456 no", "PATCH web"}}
	var brief, all strings.Builder
	v.Print(&brief, false)
	v.Print(&all, true)
	if got := brief.String(); strings.Count(got, "ERROR") != 1 || !strings.Contains(got, "19:35:51Z\tERROR\tno (2 times)") ||
		strings.Count(got, "PATCH web\n") != 2 {
		t.Errorf("in brief:\n%s", got)
	}
	if strings.Count(all.String(), "ERROR") != 2 || strings.Contains(all.String(), "times") {
		t.Errorf("VERBOSE=1:\n%s", all.String())
	}
}

func TestResultsFitTheScreen(t *testing.T) {
	long := strings.Repeat("a sentence that says what differed ", 20)
	r := Result{ID: "behaviour/05-edited-page", Title: "it is so", Verdict: Failed, What: long + "\nand more",
		Evidence: []string{long}}
	var out strings.Builder
	r.Print(&out, true)
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

func TestALogWithoutJSON(t *testing.T) {
	for line, want := range map[string]string{
		`x	ERROR	Reconciler error	{"error": "configmaps \"web\" not found", "n": 3}`: `x	ERROR	Reconciler error	error: configmaps "web" not found, n: 3`,
		`completed {"a": not JSON}`: `completed {"a": not JSON}`,
		`update webs 200 same`:      `update webs 200 same`,
	} {
		if got := plain(line); got != want {
			t.Errorf("%s is written as %s, want %s", line, got, want)
		}
	}
}
