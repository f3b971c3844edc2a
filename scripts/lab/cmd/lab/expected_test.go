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

// TestThePagesNameEachExpectedFailure checks the page of chapter 03, which describes the user-visible effect of each fault that
// its operator does not survive, and the page with the accepted findings of examine for each of these faults.
func TestThePagesNameEachExpectedFailure(t *testing.T) {
	root, err := impl.Here()
	must(t, err)
	chosen, err := impl.Choose(root, "03")
	must(t, err)
	folder := filepath.Join(root, "scripts", "lab", "examine")
	baseline, err := os.ReadFile(filepath.Join(folder, "03-baseline.yaml"))
	must(t, err)
	for _, file := range []string{filepath.Join(chosen[0].Folder, "internal", "README.md"), filepath.Join(folder, "README.md")} {
		page, err := os.ReadFile(file)
		must(t, err)
		_, table, _ := strings.Cut(string(page), "\n| fault")
		var faults []string
		for _, match := range regexp.MustCompile("`([a-z]+/[^`]+)`").FindAllStringSubmatch(table, -1) {
			if strings.HasPrefix(match[1], "fault/") {
				faults = append(faults, match[1])
			} else if !strings.Contains(string(baseline), "- id: "+match[1]+"\n") {
				t.Errorf("%s names %s, which 03-baseline.yaml does not accept", file, match[1])
			}
		}
		slices.Sort(faults)
		if !slices.Equal(faults, slices.Sorted(slices.Values(chosen[0].Fails))) {
			t.Errorf("%s names %q, operators.yaml lists %q", file, faults, chosen[0].Fails)
		}
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
