// Package mutant has the known bugs of the lab. The lab plants each bug in an operator to prove that its checks catch
// the bug, and `make bug` plants a bug in the reader's copy.
package mutant

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A Mutant is a patch of a few lines to one of the workshop's operators. The file begins with lines
//
//	Bug: what it does wrong
//	Known-from: where this bug is known from in public (not always there)
//	Of: 04
//	Rights: all (where the bug needs more than the role of the operator allows)
//	Caught-by: the checks that must fail, separated by spaces
//	Because: a regular expression for the reason of each failure (not always there)
//
// and continues with a diff for `git apply`, whose paths are relative to the chapter's folder.
type Mutant struct {
	// Name is the name of the file.
	Name      string
	Bug       string
	KnownFrom string
	Of        string
	Rights    string
	CaughtBy  []string
	Because   *regexp.Regexp
	// Diff is the patch without the lines before it.
	Diff string
}

// Read reads a mutant of the checkout at root.
func Read(root, name string) (Mutant, error) {
	file := filepath.Join(root, "scripts", "lab", "myweb", "mutants", "patches", name+".patch")
	data, err := os.ReadFile(file)
	if err != nil {
		return Mutant{}, err
	}
	m, err := parse(name, string(data))
	if err != nil {
		return m, fmt.Errorf("read %s: %w", file, err)
	}
	return m, nil
}

func parse(name, text string) (m Mutant, err error) {
	const begin = "diff --git "
	head, diff, _ := strings.Cut(text, begin)
	m.Name, m.Diff = name, begin+diff
	for line := range strings.Lines(head) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch field {
		case "Bug":
			m.Bug = value
		case "Known-from":
			m.KnownFrom = value
		case "Of":
			m.Of = value
		case "Rights":
			m.Rights = value
		case "Caught-by":
			m.CaughtBy = strings.Fields(value)
		case "Because":
			if m.Because, err = regexp.Compile(value); err != nil {
				return m, err
			}
		case "":
		default:
			return m, fmt.Errorf("%q is not Bug, Known-from, Of, Rights, Caught-by or Because", field)
		}
	}
	if m.Bug == "" || m.Of == "" || len(m.CaughtBy) == 0 || diff == "" {
		return m, fmt.Errorf("it needs Bug, Of, Caught-by and a diff")
	}
	return m, nil
}

// Files returns the files that the patch changes.
func (m Mutant) Files() (names []string) {
	for line := range strings.Lines(m.Diff) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			names = append(names, name)
		}
	}
	return names
}

var hunk = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)`)

// Places returns the places of the changes in the patched files: file:line.
func (m Mutant) Places() (all []string) {
	file := ""
	for line := range strings.Lines(m.Diff) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			file = name
		} else if at := hunk.FindStringSubmatch(line); at != nil {
			all = append(all, file+":"+at[1])
		}
	}
	return all
}

// Plant patches a folder that has copies of these files. It ignores a repository around the folder.
func (m Mutant) Plant(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "git", "apply", "--unidiff-zero", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(m.Diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch %s does not fit the source any more: %w\n%s", m.Name, err, bytes.TrimSpace(out))
	}
	return nil
}
