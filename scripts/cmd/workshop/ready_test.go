package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestTheCodeOfAReadyMachine(t *testing.T) {
	day := time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC)
	code := readyCode(day, "abc")
	if !regexp.MustCompile(`^[0-9a-f]{4}-[0-9a-f]{4}$`).MatchString(code) {
		t.Errorf("the code is %q", code)
	}
	if other := readyCode(day.Add(-20*time.Hour), "abc"); other != code {
		t.Error("it depends on the hour")
	}
	for _, other := range []string{readyCode(day.AddDate(0, 0, 1), "abc"), readyCode(day, "abd")} {
		if other == code {
			t.Error("it is that of another day or commit")
		}
	}
}

// An evening with chapter 05 needs operator-sdk, kubebuilder and the modules of a new project.
func TestReadyForAnEveningWith05(t *testing.T) {
	recipe, err := exec.Command("make", "-n", "-C", filepath.Join("..", "..", ".."), "ready", "CH=05").Output()
	if err != nil || !strings.Contains(string(recipe), `--ch "$CH"`) {
		t.Errorf("the recipe does not pass CH on: %s %v", recipe, err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, scaffolds)
	script := "#!/bin/sh\necho \"run $*\" >>" + filepath.Join(root, "log") + "\n"
	testkit.Write(t, filepath.Join(dir, "scaffold.sh"), script)
	for _, chapters := range [][]string{{"04-controller-runtime", "06-deploy"}, {scaffolds + "/nginx-operator"}} {
		testkit.Must(t, (workshop{root: root}).scaffold(t.Context(), chapters))
	}
	if log, err := os.ReadFile(filepath.Join(root, "log")); string(log) != "run \nrun kubebuilder\n" {
		t.Errorf("scaffold.sh was run so: %q, %v", log, err)
	}
}

// A bundle is an archive: the command does not ask git there, and prints the same code as in a clone.
func TestAnArchiveKnowsItsCommit(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x"}, args...)
		return strings.TrimSpace(testkit.Run(t, root, "git", args...))
	}
	for _, name := range []string{commitFile, ".gitattributes"} {
		testkit.Write(t, filepath.Join(root, name), testkit.Read(t, filepath.Join("..", "..", "..", name)))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "x")
	clone, err := workshop{root: root}.commit(t.Context())
	if err != nil || clone != git("rev-parse", "HEAD") {
		t.Fatalf("%q, %v", clone, err)
	}
	archive := t.TempDir()
	testkit.Run(t, "", "bash", "-c", "git -C '"+root+"' archive HEAD | tar -x -C '"+archive+"'")
	if unpacked, err := (workshop{root: archive}).commit(t.Context()); err != nil || unpacked != clone {
		t.Errorf("the archive is of %q, the clone of %q: %v", unpacked, clone, err)
	}
	testkit.Write(t, filepath.Join(root, ".gitattributes"), "changed\n")
	if changed, err := (workshop{root: root}).commit(t.Context()); err != nil || changed == clone {
		t.Errorf("a checkout that was changed is of %q: %v", changed, err)
	}
}
