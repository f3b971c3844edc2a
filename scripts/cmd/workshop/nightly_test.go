package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
	"sigs.k8s.io/yaml"
)

// TestNightlyResultsAreOfSteps: each row of the table is a step of the workflow, as the workflow runs it.
func TestNightlyResultsAreOfSteps(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct{ Matrix map[string][]string }
			Steps    []struct{ Run string }
		}
	}
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, filepath.Join(root, ".github/workflows/nightly.yaml"))), &workflow))
	steps := map[string]bool{}
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			steps[step.Run] = true
			for name, values := range job.Strategy.Matrix {
				for _, value := range values {
					steps[strings.ReplaceAll(step.Run, "${{ matrix."+name+" }}", value)] = true
				}
			}
		}
	}
	columns := regexp.MustCompile(`^(.+?) +20\d\d-\d\d-\d\d +[0-9a-f]{10}\S* +\d+ s  (ok|failed)$`)
	for _, row := range strings.Split(strings.TrimSpace(testkit.Read(t, filepath.Join(root, "scripts/nightly.txt"))), "\n")[1:] {
		if cells := columns.FindStringSubmatch(row); cells == nil {
			t.Errorf("this row has other columns: %q", row)
		} else if !steps[cells[1]] {
			t.Errorf("nightly.yaml has no step %q", cells[1])
		}
	}
}

func TestANightlyStepIsRecorded(t *testing.T) {
	r := newResults(t)
	for _, script := range []string{"record.sh", "nightly.sh"} {
		r.write("scripts/"+script, testkit.Read(t, filepath.Join("..", "..", script)))
	}
	r.write("CONTRIBUTING.md", "```text file=scripts/nightly.txt\n```\n")
	commit := r.commit()
	script := filepath.Join(r.root, "scripts/nightly.sh")
	r.run("bash", script, "test -d . # [x]*") // a step may have signs that a pattern has, too
	r.run("bash", script, "test -d .")
	r.run("bash", script, "test -d .")
	if out, err := exec.Command("bash", script, "exit 7").CombinedOutput(); err == nil {
		t.Errorf("a step that failed: exit code 0\n%s", out)
	}
	row := func(step, result string) string {
		return fmt.Sprintf("%-60s DATE  %s TOOK  %s\n", step, commit, result)
	}
	want := fmt.Sprintf("%-60s %-11s %-11s %7s  %s\n", "step", "on", "commit", "took", "result") +
		row("exit 7", "failed") + row("test -d .", "ok") + row("test -d . # [x]*", "ok")
	got := regexp.MustCompile(`20\d\d-\d\d-\d\d`).ReplaceAllString(r.read("scripts/nightly.txt"), "DATE")
	got = regexp.MustCompile(` +\d+ s  `).ReplaceAllString(got, " TOOK  ")
	if got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	if page := r.read("CONTRIBUTING.md"); page != "```text file=scripts/nightly.txt\n"+r.read("scripts/nightly.txt")+"```\n" {
		t.Errorf("the page has another table:\n%s", page)
	}
}
