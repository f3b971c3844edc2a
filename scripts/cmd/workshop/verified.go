package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// git returns the output of a git command in the checkout.
func (w workshop) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", w.root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// verifiedFile has the results of the tests on kind; record.sh writes it.
const verifiedFile = "scripts/verified.txt"

// resultsAge prints how old the results on kind are. No age is an error: kind needs Docker, which few machines have.
func (w workshop) resultsAge(ctx context.Context, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(w.root, verifiedFile))
	if err != nil {
		return err
	}
	var commits []string
	chapters := map[string]int{}
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		cells := strings.Fields(line)
		if len(cells) < 6 {
			return fmt.Errorf("%s: line %d has no commit", verifiedFile, n+1)
		}
		if n == 0 { // the heading
			continue
		}
		commit := cells[4]
		if chapters[commit]++; chapters[commit] == 1 {
			commits = append(commits, commit)
		}
	}
	for _, commit := range commits {
		fmt.Fprintf(out, "  %d results of commit %s: %s\n", chapters[commit], commit, w.commitAge(ctx, commit))
	}
	return nil
}

// commitAge says how many commits came after a commit. A shallow clone lacks some of them, and cannot count.
func (w workshop) commitAge(ctx context.Context, commit string) string {
	if commit == "unknown" {
		return "recorded before the table had commits, or without git"
	}
	shallow, err := w.git(ctx, "rev-parse", "--is-shallow-repository")
	switch {
	case err != nil:
		return "the age is not known, because this checkout is not a clone"
	case shallow == "true":
		return "the age is not known, because this clone is shallow: git fetch --unshallow"
	}
	later, err := w.git(ctx, "rev-list", "--count", strings.TrimSuffix(commit, "-dirty")+"..HEAD")
	if err != nil {
		return "the age is not known, because this clone does not have the commit"
	}
	return later + " commits ago"
}
