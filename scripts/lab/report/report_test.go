package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a run of 03 and 04: 04 fails a check, and both skip one.
func sample() *Comparison {
	r := &Comparison{
		Date: time.Date(2026, 5, 4, 10, 12, 0, 0, time.UTC), Took: 17*time.Minute + 42*time.Second, Commit: "73bc340+changes",
		Machine: []string{"2 cores", "24 GB", "linux/amd64"}, Versions: []string{"Kubernetes 1.37.1", "etcd 3.6.4"},
		Commands: []string{"make compare IMPL=03,04"},
		Notes:    []string{"04: a note"},
	}
	both := []impl.Implementation{{Name: "03", Title: "client-go by hand"}, {Name: "04", Title: "controller-runtime"}}
	for n, i := range both {
		owned := outcome.Result{ID: "behaviour/01-owned", Title: "owned", Experiment: "behaviour/1", Verdict: outcome.Passed}
		if i.Name == "04" {
			owned.Verdict, owned.What = outcome.Failed, "two reasons:\n1. the ConfigMap\n- the Service"
			owned.Accepted, owned.Evidence = "as operators.yaml lists it", []string{"12:04:01.220 patch deployments web 200 moved"}
		}
		results := []outcome.Result{owned,
			{ID: "behaviour/01-appear", Title: "three children", Experiment: "behaviour/1", Verdict: outcome.Passed},
			{ID: "behaviour/02-rolls", Title: "the pods | roll", Experiment: "behaviour/2", Verdict: outcome.Skipped},
			{ID: "budget/ten", Experiment: "budget", Verdict: outcome.Passed, Memory: 54 << 20,
				Requests: map[string]map[string]int{"creation of 10": {"apply configmaps": 10 + 3*n}, "steady state of 10": {}}}}
		for sequence := range 3 {
			results = append(results, outcome.Result{ID: fmt.Sprintf("crash/creation-%03b", sequence), Title: "converges",
				Experiment: "crash/creation", Verdict: outcome.Passed})
		}
		r.Impls = append(r.Impls, Implementation{Name: i.Name, Title: i.Title, Report: Of(i, results, r.Took),
			Static: Static{BinaryBytes: 44 << 20, Permissions: "14", Written: 1240, Files: 9}})
	}
	return r
}

// TestNothingIsLost checks that each outcome is on the page of the comparison, and its texts on the page of its operator.
func TestNothingIsLost(t *testing.T) {
	r := sample()
	first := r.Impls[0].Report
	first.Findings = append(first.Findings[:1], first.Findings[3:]...) // two did not run
	pages := r.Markdown() + r.Impls[1].Report.Markdown()
	for _, want := range append([]string{"04: a note\n", "2026-05-04 10:12 UTC, 18 minutes", r.Commit, "  1240      9",
		"| check | 03 client-go by hand | 04 controller-runtime |\n| --- | --- | --- |\n",
		"| **Behaviour 1: children appear, owned and selected by name and instance** | **passed** | **failed** 1 of 2 |\n",
		"| `behaviour/01-owned` owned | **passed** | **failed** |\n",
		"| `behaviour/02-rolls` the pods \\| roll | not run | **skipped** |\n",
		"| **creation of 10** | 10 | 13 |\n| apply configmaps | 10 | 13 |\n| **steady state of 10** | 0 | 0 |\n" +
			"| **memory in steady state, after the restart** | 54 MiB | 54 MiB |\n",
		"\n## Crash points, creation: from nothing to completed\n", "[04 controller-runtime](04/examine.html)",
		"\n## Accepted\n\n- `behaviour/01-owned` owned: two reasons: …. Accepted: as operators.yaml lists it\n",
		"\n- **failed**: `behaviour/01-owned` owned: two reasons:\n  1. the ConfigMap\n  - the Service\n\n      12:04:01.220 patch deployments web 200 moved\n",
		"      creation of 10: 13 apply configmaps\n      steady state of 10: no request\n",
	}, append(append(r.Commands, r.Machine...), r.Versions...)...) {
		if !strings.Contains(pages, want) {
			t.Errorf("the pages lack %q:\n%s", want, pages)
		}
	}
	if strings.Contains(pages, "Fault 1") {
		t.Errorf("no fault was tried:\n%s", pages)
	}
}
