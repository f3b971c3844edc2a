package doctor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	write := func(name string, data []byte, mode os.FileMode) {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range textAndPicture {
		write(name, []byte(text), 0o755)
	}
	for _, name := range copies {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, data, 0o644)
	}
	c.git("init", "-q", from)
	c.git("-C", from, "add", "-A")
	c.git("-C", from, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "files")
	c.git("clone", "-q", "-c", "core.autocrlf=true", from, c.dir)
	return c
}

func (c cloned) git(args ...string) {
	c.t.Helper()
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// isAsCommitted reports whether git has converted nothing.
func (c cloned) isAsCommitted() bool {
	c.t.Helper()
	for name, text := range textAndPicture {
		data, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			c.t.Fatal(err)
		}
		if !bytes.Equal(data, []byte(text)) {
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
	finding := checkLines(t.Context(), Local(c.dir))
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
	if finding := checkLines(t.Context(), Local(c.dir)); finding.Status != OK {
		t.Errorf("%+v", finding)
	}
	out, err := exec.Command("make", "-s", "-C", c.dir, "doctor").CombinedOutput()
	if err != nil || string(out) != "it runs: doctor\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
