package checks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// TestEachRow checks that every row of the fault catalogue has checks, in order. `bin/lab faults` runs them in a
// fixture.
func TestEachRow(t *testing.T) {
	var groups []string
	ids := map[string]bool{}
	for _, c := range Faults() {
		if ids[c.ID] {
			t.Errorf("two checks are called %s", c.ID)
		}
		ids[c.ID] = true
		groups = append(groups, c.Group)
		var row int
		if _, err := fmt.Sscanf(c.ID, "fault/%02d-", &row); err != nil || fmt.Sprint(row) != c.Group {
			t.Errorf("%s is in group %q", c.ID, c.Group)
		}
		if c.Title == "" || c.Run == nil && c.NotApplicable == "" {
			t.Errorf("%s lacks a title, or what to run", c.ID)
		}
	}
	groups = slices.Compact(groups)
	for n, row := range FaultTitles {
		group, _, _ := strings.Cut(row, " ")
		if n >= len(groups) || groups[n] != group {
			t.Fatalf("row %q has no check in its place: %v", row, groups)
		}
	}
	if len(groups) != len(FaultTitles) {
		t.Errorf("%d groups of checks, %d rows", len(groups), len(FaultTitles))
	}
}

// TestFastOnesAreShared checks that the subset for CI has only checks that run side by side.
func TestFastOnesAreShared(t *testing.T) {
	for _, c := range suite.Fast(Faults()) {
		if c.Alone || c.NotApplicable != "" {
			t.Errorf("%s is Fast, but Alone or not applicable", c.ID)
		}
	}
}

// TestAFieldThatAUserCanChangeIsNotLeftOut: the reasons are those of the API server, and of a field without a known
// value.
func TestAFieldThatAUserCanChangeIsNotLeftOut(t *testing.T) {
	for reason, want := range map[string]bool{
		`spec.selector: Invalid value: {"app":"vandal"}: field is immutable`:                            true,
		"spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`": true,
		`spec.template.spec.containers[0].volumeMounts[0].name: Not found: "page"`:                      true,
		`spec.externalTrafficPolicy: Unsupported value: "drift": supported values: "Cluster", "Local"`:  false,
		`the lab has no other value for ["ALL"]`:                                                        false,
		`spec.ports[0].name: Invalid value: "/drift": must be a name`:                                   false,
	} {
		if fixed.MatchString(reason) != want {
			t.Errorf("no user can change it: %t, want %t: %s", !want, want, reason)
		}
	}
}
