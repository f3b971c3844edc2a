// Package mutants plants bugs in an operator, one at a time, to see that the lab catches them: a lab that
// never caught a planted fault proves nothing.
package mutants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/lab/myweb/impl"
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
// and goes on with a diff for `git apply`, whose paths are seen from the chapter's folder.
type Mutant struct {
	// Name is that of the file.
	Name      string
	Bug       string
	KnownFrom string
	Of        string
	Rights    string
	CaughtBy  []string
	Because   *regexp.Regexp
	// CRD is the file of a patched CRD, set by Build; empty when the patch is not of it.
	CRD string

	patch []byte
}

// All reads the mutants of the checkout at root, by name.
func All(root string) ([]Mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "scripts", "lab", "myweb", "mutants", "patches", "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func read(file string) (m Mutant, err error) {
	m.Name = strings.TrimSuffix(filepath.Base(file), ".patch")
	if m.patch, err = os.ReadFile(file); err != nil {
		return m, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(m.patch)); lines.Scan() && !strings.HasPrefix(lines.Text(), "diff "); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
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
	if m.Bug == "" || m.Of == "" || len(m.CaughtBy) == 0 {
		return m, fmt.Errorf("it needs Bug, Of and Caught-by")
	}
	return m, nil
}

// Build compiles the mutant into a folder. The chapter itself stays as it is: the compiler is given patched
// copies of the files in place of them.
func (m *Mutant) Build(ctx context.Context, listed []impl.Implementation, dir string) (impl.Implementation, error) {
	i, err := m.patched(ctx, listed, dir)
	if err != nil {
		return i, err
	}
	return i.Build(ctx, dir)
}

// patched is the implementation with patched copies in the folder.
func (m *Mutant) patched(ctx context.Context, listed []impl.Implementation, dir string) (impl.Implementation, error) {
	at := slices.IndexFunc(listed, func(i impl.Implementation) bool { return i.Name == m.Of })
	if at < 0 {
		return impl.Implementation{}, fmt.Errorf("mutant %s is of %q, which is not listed", m.Name, m.Of)
	}
	i := listed[at]
	overlay, err := m.overlay(ctx, i.Folder, filepath.Join(dir, m.Name+".src"))
	if err != nil {
		return i, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	i.Name, i.Title, i.BuildArgs = m.Name, m.Bug, []string{"-overlay", overlay}
	if slices.Contains(m.files(), i.Webhooks) {
		i.Webhooks = filepath.Join(dir, m.Name+".src", i.Webhooks)
	}
	return i, nil
}

// overlay patches copies of the files and returns the file that tells the compiler of them.
func (m *Mutant) overlay(ctx context.Context, folder, dir string) (string, error) {
	replace := map[string]string{}
	for _, name := range m.files() {
		from, to := filepath.Join(folder, name), filepath.Join(dir, name)
		data, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return "", err
		}
		if filepath.Base(name) == filepath.Base(impl.CRD) {
			m.CRD = to
		} else {
			replace[from] = to
		}
	}
	cmd := exec.CommandContext(ctx, "git", "apply", "--unidiff-zero", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(m.patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("its patch does not fit the source any more: %w\n%s", err, out)
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o600)
}

// files are those that the patch changes.
func (m Mutant) files() (names []string) {
	for line := range strings.Lines(string(m.patch)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			names = append(names, name)
		}
	}
	return names
}
