package examine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/strictyaml"
)

// A Baseline lists failures that the owner of an operator knows and accepts.
type Baseline struct {
	Accepted []Acceptance `json:"accepted"`
}

// An Acceptance is the id of a finding, and why it may fail.
type Acceptance struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Sometimes means that the finding does not fail in each run.
	Sometimes bool `json:"sometimes,omitempty"`
}

// ReadBaseline reads a file of accepted findings.
func ReadBaseline(file string) (b Baseline, err error) {
	if err := strictyaml.Read(file, &b); err != nil {
		return b, fmt.Errorf("BASELINE=%s cannot be read: %w", file, err)
	}
	for _, a := range b.Accepted {
		experiment, _, _ := strings.Cut(a.ID, "/")
		switch {
		case !slices.Contains(IDs(), experiment):
			return b, fmt.Errorf("BASELINE=%s accepts %q, which is not the id of a finding: copy ids from examine.json",
				file, a.ID)
		case strings.TrimSpace(a.Reason) == "":
			return b, fmt.Errorf("BASELINE=%s accepts %s without a reason: add one", file, a.ID)
		}
	}
	return b, nil
}

// Accept marks the failures that a baseline lists, and notes the entries of the baseline that should fail and did not.
// When an experiment skipped a part, a finding may only be missing.
func (r *Report) Accept(b Baseline) {
	for _, a := range b.Accepted {
		at := slices.IndexFunc(r.Findings, func(f outcome.Result) bool { return f.ID == a.ID })
		if at >= 0 && r.Findings[at].Verdict == Failed {
			r.Findings[at].Accepted = a.Reason
			continue
		}
		if a.Sometimes {
			continue
		}
		experiment, _, _ := strings.Cut(a.ID, "/")
		complete := r.ran(experiment) && r.count(experiment, Skipped) == 0
		if at >= 0 && r.Findings[at].Verdict != Skipped || at < 0 && complete {
			r.Gone = append(r.Gone, a.ID)
		}
	}
}

// badness sorts verdicts. A skipped finding is not compared: nothing was tried.
var badness = map[Verdict]int{Late: 1, Failed: 2}

// Compare is a page with the findings that became better or worse from an older report to a newer one. It leaves out
// what only one of them had time for. Worse are the ids of findings that fail now without being
// accepted, and passed, or came late, before.
func Compare(older, newer *Report) (page string, worse []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s against %s\n\n", newer.Operator, older.Operator)
	before := map[string]outcome.Result{}
	for _, f := range older.Findings {
		before[f.ID] = f
	}
	var down, better, only []string
	for _, f := range newer.Findings {
		was, known := before[f.ID]
		delete(before, f.ID)
		line := fmt.Sprintf("- %s: %s → %s: %s", f.Title, was.Verdict, f.Verdict, firstLine(f.What))
		switch {
		case !known && older.cut(f.Experiment), f.Left+was.Left > 0,
			f.Of != was.Of && (older.cut(f.Experiment) || newer.cut(f.Experiment)): // only one side had time for it
		case !known:
			only = append(only, fmt.Sprintf("- only now: %s: %s", f.Title, f.Verdict))
		case (f.Verdict == Skipped) != (was.Verdict == Skipped):
			only = append(only, line)
		case badness[f.Verdict] > badness[was.Verdict]:
			down = append(down, line)
			if f.Verdict == Failed && f.Accepted == "" {
				worse = append(worse, f.ID)
			}
		case badness[f.Verdict] < badness[was.Verdict]:
			better = append(better, line)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if before[id].Left > 0 || newer.cut(before[id].Experiment) {
			continue
		}
		only = append(only, fmt.Sprintf("- only before: %s: %s", before[id].Title, before[id].Verdict))
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Worse", down}, {"Better", better}, {"Not in both", only}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", part.title, strings.Join(part.lines, "\n"))
		}
	}
	if len(down)+len(better) == 0 {
		b.WriteString("No verdict changed.\n\n")
	}
	b.WriteString("## Requests\n\n| experiment | reads before | reads now | writes before | writes now |\n" +
		"| --- | --- | --- | --- | --- |\n")
	for _, s := range newer.sections() {
		if !older.cut(s.ID) && !newer.cut(s.ID) {
			was, now := older.Requests[s.ID], newer.Requests[s.ID]
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", s.Title, was.Reads, now.Reads, was.Writes, now.Writes)
		}
	}
	return b.String(), worse
}
