package examine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// TestQueue has an experiment that runs alone before two that run side by side.
func TestQueue(t *testing.T) {
	all := []experiment{{id: "first", share: 1, alone: true}, {id: "second", share: 2}, {id: "third", share: 3}}
	q := &queue{all: all, left: all, clock: &clock.Clock{}, end: time.Hour, runs: 1}
	if e, _, _, ok := q.next(false); ok {
		t.Errorf("%s runs beside others", e.id)
	}
	if e, number, deadline, ok := q.next(true); !ok || e.id != "first" || number != 1 || deadline.Minutes() != 10 {
		t.Errorf("%v, %s, %d, for %v minutes", ok, e.id, number, deadline.Minutes())
	}
	if e, _, _, ok := q.next(true); ok {
		t.Errorf("%s runs alone", e.id)
	}
	q.join()
	if e, number, deadline, ok := q.next(false); !ok || e.id != "second" || number != 2 || deadline.Minutes() != 48 {
		t.Errorf("%v, %s, %d, for %v minutes", ok, e.id, number, deadline.Minutes())
	}
	if e, number, deadline, ok := q.next(false); !ok || e.id != "third" || number != 3 || deadline.Minutes() != 60 {
		t.Errorf("%v, %s, %d, for %v minutes", ok, e.id, number, deadline.Minutes())
	}
	if _, _, _, ok := q.next(false); ok {
		t.Error("there is a fourth experiment")
	}
}

func TestLinesOfTwoRuns(t *testing.T) {
	var lines []string
	n := &narrator{pass: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
	n.say("", "it starts")
	n.say("[1/2] Deletion", "")
	n.say("[2/2] Drift", "")
	n.say("[1/2] Deletion", "  passed")
	n.say("[1/2] Deletion", "  failed")
	want := []string{"it starts", "[1/2] Deletion", "[2/2] Drift", "[1/2] Deletion", "  passed", "  failed"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

func TestFindingsOfTwoRuns(t *testing.T) {
	finding := func(experiment, title string) outcome.Result {
		return outcome.Result{Experiment: experiment, Title: title}
	}
	r := &Report{Findings: []outcome.Result{finding("creation", "a"), finding("drift", "d"), finding("drift", "c")},
		Requests: map[string]Requests{"drift": {Reads: 1}}}
	r.merge(&Report{Findings: []outcome.Result{finding("deletion", "b"), finding("spec", "e")},
		Requests: map[string]Requests{"deletion": {Reads: 2}}})
	var titles strings.Builder
	for _, f := range r.Findings {
		titles.WriteString(f.Title)
	}
	if titles.String() != "abdce" || r.Requests["deletion"].Reads != 2 || r.Requests["drift"].Reads != 1 {
		t.Errorf("%s, %v", &titles, r.Requests)
	}
}

// TestSideBySide has an operator whose process ends in one experiment: the experiments beside it pass. The permissions are
// those that both labs used: only two replicas use a lease, and the lab in which they run is not that of the deletion.
func TestSideBySide(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=chokes")
	s.Fast = false
	only := []string{"deletion", "replicas", "spec", "values", "permissions"}
	headings := 0
	report, err := Run(t.Context(), s, Options{Only: only, Progress: func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.HasPrefix(fmt.Sprintf(format, args...), "[") {
			headings++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if headings == len(only) {
		t.Error("one experiment came after the other")
	}
	if got := failedExperiments(report); got != "values permissions" {
		t.Errorf("failed: %q", got)
	}
	if slices.ContainsFunc(report.Findings, func(f outcome.Result) bool { return f.Title == "further permissions" }) {
		t.Errorf("the permissions of the lease are not used:\n%s", report.Markdown())
	}
	ids := []string{}
	for _, f := range report.Findings {
		ids = append(ids, f.Experiment)
	}
	ids = slices.Compact(ids)
	if !slices.Equal(ids, only) {
		t.Errorf("the experiments are in the order %q, want %q", ids, only)
	}
}

// TestWithoutASecondLab has a folder of programs from which kubectl is gone when the second lab starts: the first lab runs all
// experiments.
func TestWithoutASecondLab(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	bin, err := cluster.Programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range append(cluster.Names(), "kubectl") {
		if err := os.Symlink(filepath.Join(bin, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := greeting(build(t))
	s.Fast = false
	report, err := Run(t.Context(), s, Options{Only: []string{"restart", "deletion", "replicas"}, Bin: dir,
		Progress: func(format string, args ...any) {
			t.Logf(format, args...)
			if strings.Contains(fmt.Sprintf(format, args...), "undisturbed creation 1") {
				_ = os.Remove(filepath.Join(dir, "kubectl"))
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	page := report.Markdown()
	if report.Count(Failed) > 0 || report.count("replicas", Passed) == 0 ||
		!strings.Contains(page, "The experiments did not run side by side: in a second lab, the control plane did not start") {
		t.Errorf("the first lab did not run all experiments, or the page does not say it:\n%s", page)
	}
}
