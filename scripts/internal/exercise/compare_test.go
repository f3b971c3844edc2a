package exercise

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestTwoRunsOfACheckAreCompared: the runs must be of one check, and an owner makes a difference.
func TestTwoRunsOfACheckAreCompared(t *testing.T) {
	c, e := Course{Checks: t.TempDir()}, Exercise{ID: "04.3", Solution: "x"}
	if err := c.RecordSolution(t.Context(), e); !errors.Is(err, ErrNoRun) {
		t.Errorf("without a check: %v", err)
	}
	run := func(namespace string, facts ...string) []loop.Record {
		r := loop.Record{Is: loop.Request, N: 1, Verb: "create", Resource: "configmaps", Namespace: namespace, Name: "web", Code: 201,
			Effect: "moved"}
		user := r
		user.Resource, user.By.Name = "mywebs", loop.User
		r.N, r.Facts, r.By.Name = 2, facts, "operator"
		return []loop.Record{user, r}
	}
	testkit.Must(t, c.Kept(e).Write(run("a-1", loop.NoOwner), loop.KeptVerdict{Exercise: "04.3", Check: "a", Namespace: "a-1", At: 2}))
	solution := loop.KeptOf(filepath.Join(c.Checks, "solutions"), "04.3")
	for _, check := range []string{"", "b", "a"} {
		if check != "" {
			j := loop.KeptVerdict{Exercise: "04.3", Passed: true, Check: check, Namespace: "a-2"}
			testkit.Must(t, solution.Write(run("a-2", "generation 1", "owner: MyWeb web (controller)"), j))
		}
		compared, mine, theirs, err := c.Compare(t.Context(), e)
		if check != "a" {
			if !errors.Is(err, ErrNoRun) {
				t.Errorf("a solution's run of %q: %v", check, err)
			}
			continue
		}
		var out, calm strings.Builder
		testkit.Must(t, errors.Join(err, PrintComparison(&out, compared, mine, theirs)))
		for _, want := range []string{"Your run of a:", "create configmaps web 201 moved\n>>> the first difference: The solution's run lacks " +
			"this. (no owner)\n\nThe solution's run of a:\n", "Your run lacks this. (owner: MyWeb web (controller))"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, &out)
			}
		}
		mine.Passed = true
		testkit.Must(t, PrintComparison(&calm, compared, mine, theirs))
		for _, want := range []string{">>> Only your run has this.", ">>> Only the solution's run has this.",
			"Both programs passed the check: this difference is not a mistake."} {
			if !strings.Contains(calm.String(), want) || strings.Contains(calm.String(), "first difference") {
				t.Errorf("%q is not in\n%s", want, &calm)
			}
		}
	}
}
