package examine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/pod"
)

// TestScaffolds examines a scaffold with leader election and webhooks, as a reader's first operator is: only its
// controller is filled. It compiles a second set of Kubernetes libraries.
func TestScaffolds(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("only with LONG=1")
	}
	if err := pod.Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	for tool, manifest := range map[string]string{"kubebuilder": "manifest.yaml", "operator-sdk": "manifests"} {
		t.Run(tool, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "scaffolded/scaffold.sh", tool, dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			report, err := Run(t.Context(), Subject{Manifest: filepath.Join(dir, manifest),
				Program: filepath.Join(dir, "bin/manager"), Sample: filepath.Join(dir, "config/samples/webapp_v1_guestbook.yaml")},
				Options{Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d passed, %d failed and %d were skipped in %v, on an idle machine %v", report.Count(Passed),
				report.Count(Failed), report.Count(Skipped), report.Took, report.Idle)
			examinedAsInACluster(t, report)
		})
	}
}

// ofSample are findings that are skipped because of the scaffold itself: its sample has an empty spec and no status, its
// only field is a text, a creation takes one write, which is a create, and nothing reports a refusal.
var ofSample = []string{"fields reach the children or are refused", "refused by the schema or a webhook",
	"a removed status comes back", "further permissions", "recovers from 409 Conflict",
	"a policy refuses deployments.apps/guestbook-sample at length", keepsField}

// ofTime are the parts of experiments that the time leaves out.
var ofTime = []string{"faults", "crash sequences", "policies", "fights", "deleted children", "changed children",
	"fields of the changed children", "older children", "changes of the spec", "names that are taken", "extreme values"}

// ofTwo are the findings about a second replica, which the lab must try.
var ofTwo = []string{"of two replicas one writes", "the other replica takes over",
	"a leader that was paused for longer than its lease no longer writes"}

// examinedAsInACluster reports an experiment that was skipped because of its environment.
func examinedAsInACluster(t *testing.T, report *Report) {
	t.Helper()
	if page := report.Markdown(); !strings.Contains(page, "Its webhooks were served: ") {
		t.Errorf("its webhooks were not served:\n%s", page)
	}
	missing := slices.Clone(ofTwo)
	for _, f := range report.Findings {
		part, isPart := strings.CutPrefix(f.Title, notTried)
		isAllowed := slices.Contains(ofSample, f.Title) || isPart && slices.Contains(ofTime, part) ||
			strings.HasPrefix(f.What, errOver.Error()) && !slices.Contains(ofTwo, f.Title)
		if f.Verdict == Skipped && !isAllowed {
			t.Errorf("skipped: %s: %s", f.Title, f.What)
		}
		if strings.Contains(f.What, "the schema has none") {
			t.Errorf("it has spec.foo: %s: %s", f.Title, f.What)
		}
		missing = slices.DeleteFunc(missing, func(title string) bool { return title == f.Title })
	}
	if len(missing) > 0 {
		t.Errorf("not tried: %q", missing)
	}
}
