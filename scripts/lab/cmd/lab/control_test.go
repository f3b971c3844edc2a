package main

import (
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/outcome"
)

func TestControlNamesEachDifference(t *testing.T) {
	outcomes := []outcome.Result{{Check: "behaviour/01", Verdict: outcome.Passed},
		{Check: "fault/02", Verdict: outcome.Passed}}
	counts := map[string]map[string]int{"creation of 10": {"apply configmaps": 10}}
	if err := sameVerdicts(outcomes, outcomes); err != nil {
		t.Errorf("the same verdicts: %v", err)
	}
	if err := sameCounts(counts, counts); err != nil {
		t.Errorf("the same counts: %v", err)
	}
	for want, err := range map[string]error{
		"fault/02: passed, and then failed": sameVerdicts(outcomes,
			[]outcome.Result{outcomes[0], {Check: "fault/02", Verdict: outcome.Failed}}),
		"fault/02: passed, and then": sameVerdicts(outcomes, outcomes[:1]),
		"creation of 10, apply configmaps: 10 requests, and then 11": sameCounts(counts,
			map[string]map[string]int{"creation of 10": {"apply configmaps": 11}}),
		"creation of 10, get secrets: 0 requests, and then 1": sameCounts(counts,
			map[string]map[string]int{"creation of 10": {"apply configmaps": 10, "get secrets": 1}}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
