package window

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestAReportOfAnExamination examines the test operator with a fault, and writes the picture of the README of examine:
//
//	REPORT_PICTURES=$PWD/scripts/examine go test -C scripts ./internal/window -run TestAReportOfAnExamination
func TestAReportOfAnExamination(t *testing.T) {
	folder := os.Getenv("REPORT_PICTURES")
	if folder == "" {
		t.Skip("REPORT_PICTURES names no folder")
	}
	root, err := filepath.Abs("../../..")
	testkit.Must(t, err)
	out := t.TempDir()
	examine := exec.CommandContext(t.Context(), "go", "run", "./cmd/examine", "run", "PROGRAM=testoperator",
		"CRD=testoperator/config/crd.yaml", "SAMPLE=testoperator/config/sample.yaml", "READY=Ready", "ENV=FAULT=no-drift",
		"RUN=creation,restart,drift", "FAST=1", "OUT="+out)
	examine.Dir = filepath.Join(root, "scripts", "examine")
	examine.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+filepath.Join(root, "bin"))
	if printed, err := examine.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	tab, end := chromedp.NewContext(start(t).browser(t))
	t.Cleanup(end)
	do(t, tab, chromedp.EmulateViewport(1000, 760), chromedp.Navigate("file://"+filepath.Join(out, "examine.html")))
	says(t, tab, "#loses-data-or-stops ~ ul", "a deleted configmaps/hello comes back")
	var wide bool
	do(t, tab, chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide))
	if wide {
		t.Error("the report is wider than the window")
	}
	writePicture(t, tab, filepath.Join(folder, "report.png"))
}
