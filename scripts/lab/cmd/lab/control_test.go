package main

import (
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/outcome"
)

func TestControlNamesEachDifference(t *testing.T) {
	ran := verdicts([]outcome.Result{{Check: "behaviour/01", Verdict: outcome.Passed},
		{Check: "fault/02", Verdict: outcome.Passed}})
	if err := differences("%s: %v, and then %v", ran, ran); err != nil {
		t.Errorf("the same verdicts: %v", err)
	}
	counts := flat(map[string]map[string]int{"creation of 10": {"apply configmaps": 10}})
	for want, later := range map[string]map[string]int{
		"creation of 10, apply configmaps: 10, and then 11": {"creation of 10, apply configmaps": 11},
		"creation of 10, get secrets: 0, and then 1": {"creation of 10, apply configmaps": 10,
			"creation of 10, get secrets": 1},
	} {
		if err := differences("%s: %v, and then %v", counts, later); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	const want = "fault/02: passed, and then failed"
	err := differences("%s: %v, and then %v", ran, map[string]outcome.Verdict{"behaviour/01": outcome.Passed,
		"fault/02": outcome.Failed})
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}
