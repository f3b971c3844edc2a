package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestExpectedFailuresAreChecks rejects expected failures that name no check, because no outcome would be compared
// with them.
func TestExpectedFailuresAreChecks(t *testing.T) {
	root, err := impl.Here()
	must(t, err)
	listed, err := impl.Listed(root)
	must(t, err)
	checks := checks.All()
	for _, i := range listed {
		for _, id := range i.Fails {
			if !slices.ContainsFunc(checks, func(c suite.Check) bool { return c.ID == id && c.NotApplicable == "" }) {
				t.Errorf("%s fails %s, which is no check", i.Name, id)
			}
		}
	}
}

// TestThePageNamesEachExpectedFailure checks the page of chapter 03, which describes the user-visible effect of each
// fault that its operator does not survive.
func TestThePageNamesEachExpectedFailure(t *testing.T) {
	root, err := impl.Here()
	must(t, err)
	chosen, err := impl.Choose(root, "03")
	must(t, err)
	page, err := os.ReadFile(filepath.Join(chosen[0].Folder, "internal", "README.md"))
	must(t, err)
	_, table, _ := strings.Cut(string(page), "| fault, by the name of its check |")
	named := regexp.MustCompile("`(fault/[^`]+)`").FindAllStringSubmatch(table, -1)
	var ids []string
	for _, match := range named {
		ids = append(ids, match[1])
	}
	slices.Sort(ids)
	if !slices.Equal(ids, slices.Sorted(slices.Values(chosen[0].Fails))) {
		t.Errorf("the page names %q, operators.yaml lists %q", ids, chosen[0].Fails)
	}
}

// TestThePagesNameEachAcceptedExperiment: the baselines accept as many failures of each experiment as the pages of the operators
// explain, so a nightly run fails for the faults that no page explains.
func TestThePagesNameEachAcceptedExperiment(t *testing.T) {
	root, err := impl.Here()
	must(t, err)
	for file, baseline := range map[string]string{"05-operator-sdk/nginx-operator/reference/README.md": "nginx-baseline.yaml",
		"03-client-go-controller/internal/README.md": "03-baseline.yaml"} {
		page, err := os.ReadFile(filepath.Join(root, file))
		must(t, err)
		experiments := map[string]int{}
		for _, match := range regexp.MustCompile("`([a-z-]+)` \\(([0-9])\\):").FindAllStringSubmatch(string(page), -1) {
			experiments[match[1]] += int(match[2][0] - '0')
		}
		list, err := os.ReadFile(filepath.Join(root, "scripts", "lab", "examine", baseline))
		must(t, err)
		accepted := map[string]int{}
		for _, match := range regexp.MustCompile(`(?m)^- id: ([a-z-]+)/`).FindAllStringSubmatch(string(list), -1) {
			accepted[match[1]]++
		}
		if len(experiments) == 0 || !maps.Equal(experiments, accepted) {
			t.Errorf("%s names %v, %s accepts failures of %v", file, experiments, baseline, accepted)
		}
	}
}
