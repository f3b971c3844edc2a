package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A results is a clone of a repository with results on kind.
type results struct {
	t    *testing.T
	root string
}

func newResults(t *testing.T) results {
	r := results{t, t.TempDir()}
	r.write("scripts/verified.txt", "chapter Kubernetes machine on commit took\n01-crd v1.36.0 amd64 2026-11-23 unknown 16 s\n")
	r.write("README.md", "# x\n```text file=scripts/verified.txt\nold\n```\nend\n")
	r.write("main.go", "package main\n")
	r.git("init", "-q")
	r.commit()
	return r
}

func (r results) write(name, text string) {
	r.t.Helper()
	testkit.Write(r.t, filepath.Join(r.root, name), text)
}

func (r results) read(name string) string {
	r.t.Helper()
	return testkit.Read(r.t, filepath.Join(r.root, name))
}

func (r results) run(program string, args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(testkit.Run(r.t, "", program, args...))
}

func (r results) git(args ...string) string {
	r.t.Helper()
	return r.run("git", append([]string{"-C", r.root, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
}

// commit commits all files, and returns the commit as the table has it.
func (r results) commit() string {
	r.t.Helper()
	r.git("add", ".")
	r.git("commit", "-q", "--allow-empty", "-m", "x")
	return r.git("rev-parse", "--short=10", "HEAD")
}

// record records results as kind-test.sh does in one run.
func (r results) record(chapters ...string) {
	r.t.Helper()
	functions := testkit.Read(r.t, filepath.Join("..", "..", "record.sh"))
	script := "set -euo pipefail; root=$1; shift\n" + functions +
		`commit=$(tested_commit); for chapter in "$@"; do record "$chapter" 7 v1.37.1 amd64 "$commit"; done`
	r.run("bash", append([]string{"-c", script, "-", r.root}, chapters...)...)
}

// age returns what `make verify` prints.
func (r results) age(root string) string {
	r.t.Helper()
	var out strings.Builder
	if err := (workshop{root: root}).resultsAge(r.t.Context(), &out); err != nil {
		r.t.Error(err)
	}
	return out.String()
}

func TestResultsOnKindNameTheirCommit(t *testing.T) {
	r := newResults(t)
	commit := r.git("rev-parse", "--short=10", "HEAD")
	r.record("01-crd")
	r.record("02-codegen") // the run before changed the table
	table := r.read("scripts/verified.txt")
	if n := strings.Count(table, " "+commit+" "); n != 2 || strings.Contains(table, "dirty") {
		t.Errorf("a run at %s recorded:\n%s", commit, table)
	}
	if !strings.Contains(table, "v1.36.0") {
		t.Errorf("the result on another Kubernetes is gone:\n%s", table)
	}
	if want := "# x\n```text file=scripts/verified.txt\n" + table + "```\nend\n"; r.read("README.md") != want {
		t.Errorf("README.md has another table:\n%s", r.read("README.md"))
	}
	r.write("main.go", "package other\n")
	r.record("01-crd")
	if table = r.read("scripts/verified.txt"); strings.Count(table, " "+commit+"-dirty ") != 1 {
		t.Errorf("a run with a changed file recorded:\n%s", table)
	}
	testkit.Must(t, os.RemoveAll(filepath.Join(r.root, ".git")))
	r.record("01-crd")
	if table = r.read("scripts/verified.txt"); strings.Count(table, " unknown ") != 2 {
		t.Errorf("a run without git recorded:\n%s", table)
	}
}

func TestResultsOnKindHaveAnAge(t *testing.T) {
	r := newResults(t)
	r.record("02-codegen", "03-x")
	tested := r.git("rev-parse", "--short=10", "HEAD")
	for range 3 {
		r.commit()
	}
	want := func(root, of, say string) {
		t.Helper()
		if got := r.age(root); !strings.Contains(got, "2 results of commit "+of+": "+say) {
			t.Errorf("got %q, want %q", got, say)
		}
	}
	want(r.root, tested, "3 commits ago")
	if got := r.age(r.root); !strings.Contains(got, "1 results of commit unknown: ") {
		t.Errorf("a result without a commit: %q", got)
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	r.run("git", "clone", "-q", "--depth=1", "file://"+r.root, shallow)
	want(shallow, tested, "the age is not known, because this clone is shallow")
	r.write("scripts/verified.txt", strings.ReplaceAll(r.read("scripts/verified.txt"), tested, "0123456789-dirty"))
	want(r.root, "0123456789-dirty", "the age is not known, because this clone does not have the commit")
	testkit.Must(t, os.RemoveAll(filepath.Join(r.root, ".git")))
	want(r.root, "0123456789-dirty", "the age is not known, because this checkout is not a clone")
}
