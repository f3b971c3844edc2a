package doctor

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A cloned is a clone of a small repository as Git for Windows makes it, with core.autocrlf.
type cloned struct {
	t   *testing.T
	dir string
}

var textAndPicture = map[string]string{"scripts/workshop": "#!/usr/bin/env bash\necho \"it runs: $1\"\n",
	"picture.png": "\x89PNG\r\n\x1a\n\x00\n"}

// newCloned clones those files with copies of files of the workshop.
func newCloned(t *testing.T, copies ...string) cloned {
	t.Helper()
	c, from := cloned{t, filepath.Join(t.TempDir(), "clone")}, t.TempDir()
	for name, text := range textAndPicture {
		testkit.Write(t, filepath.Join(from, name), text)
	}
	for _, name := range copies {
		testkit.Write(t, filepath.Join(from, name), testkit.Read(t, filepath.Join("..", "..", "..", name)))
	}
	testkit.Run(t, from, "git", "init", "-q")
	testkit.Run(t, from, "git", "add", "-A")
	testkit.Run(t, from, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "files")
	testkit.Run(t, from, "git", "clone", "-q", "-c", "core.autocrlf=true", from, c.dir)
	return c
}

// isAsCommitted reports whether git has converted nothing.
func (c cloned) isAsCommitted() bool {
	c.t.Helper()
	for name, text := range textAndPicture {
		if testkit.Read(c.t, filepath.Join(c.dir, name)) != text {
			return false
		}
	}
	return true
}

func TestGitForWindowsConvertsNothing(t *testing.T) {
	if c := newCloned(t); c.isAsCommitted() {
		t.Error("git converts nothing without .gitattributes, so this test shows nothing")
	}
	if c := newCloned(t, ".gitattributes"); !c.isAsCommitted() {
		t.Error("git has converted files in spite of .gitattributes")
	}
}

// A clone of an earlier version keeps its converted files. Every target reports that, and the fix is run.
func TestAConvertedCloneIsReportedAndFixed(t *testing.T) {
	c := newCloned(t, "Makefile")
	lines := named(t, "Lines")
	finding := lines.run(t.Context(), Local(c.dir))
	if finding.Status != Failure || !strings.Contains(finding.What, "2 files have CRLF") {
		t.Errorf("%+v", finding)
	}
	_, fix, _ := strings.Cut(finding.Fix, "\n")
	for _, target := range []string{"doctor", "demo"} {
		out, err := exec.Command("make", "-C", c.dir, target).CombinedOutput()
		if err == nil || !strings.Contains(string(out), fix) {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
	run := exec.Command("sh", "-c", fix)
	run.Dir = c.dir
	if out, err := run.CombinedOutput(); err != nil || !c.isAsCommitted() {
		t.Errorf("not fixed: %v\n%s", err, out)
	}
	if finding := lines.run(t.Context(), Local(c.dir)); finding.Status != OK {
		t.Errorf("%+v", finding)
	}
	out, err := exec.Command("make", "-s", "-C", c.dir, "doctor").CombinedOutput()
	if err != nil || string(out) != "it runs: doctor\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
