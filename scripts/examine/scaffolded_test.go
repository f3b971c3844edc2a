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

// TestScaffolds examines an unchanged scaffold, with leader election and webhooks, as a reader's first operator is. It
// compiles a second set of Kubernetes libraries.
func TestScaffolds(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("only with LONG=1")
	}
	if err := pod.Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	for _, tool := range []string{"kubebuilder", "operator-sdk"} {
		t.Run(tool, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "scaffolded/scaffold.sh", tool, dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			report, err := Run(t.Context(), Subject{Manifest: filepath.Join(dir, "manifest.yaml"),
				Program: filepath.Join(dir, "bin/manager"), Sample: filepath.Join(dir, "config/samples/webapp_v1_guestbook.yaml"),
				Fast: true}, Options{Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			examinedAsInACluster(t, report)
		})
	}
}

// ofSample are findings that are skipped because of the scaffold itself: its sample has an empty spec and no status, and the
// only field of the schema is a text.
var ofSample = []string{"fields reach the children or are refused", "refused by the schema or a webhook",
	"a removed status comes back", "further permissions"}

// examinedAsInACluster reports an experiment that was skipped because of its environment.
func examinedAsInACluster(t *testing.T, report *Report) {
	t.Helper()
	if report.count("replicas", Passed) == 0 {
		t.Error("two replicas did not elect a leader")
	}
	if page := report.Markdown(); !strings.Contains(page, "Its webhooks were served: ") {
		t.Errorf("its webhooks were not served:\n%s", page)
	}
	for _, f := range report.Findings {
		if f.Verdict == Skipped && !strings.HasPrefix(f.Title, "not tried: ") && !slices.Contains(ofSample, f.Title) {
			t.Errorf("skipped: %s: %s", f.Title, f.What)
		}
		if strings.Contains(f.What, "the schema has none") {
			t.Errorf("it has spec.foo: %s: %s", f.Title, f.What)
		}
	}
}
