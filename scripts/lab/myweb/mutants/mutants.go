// Package mutants plants bugs in an operator, one at a time, to see that the lab catches them: a lab that has never
// caught a planted bug proves nothing.
package mutants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/internal/mutant"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// A Mutant is a planted bug that the lab builds into an operator.
type Mutant struct {
	mutant.Mutant
	// Unpatched is the operator that it patches.
	Unpatched impl.Implementation
	// CRD is the file of a patched CRD, set by Build; empty when the patch does not change the CRD.
	CRD string
}

// All reads the mutants of the checkout at root, by name.
func All(root string) ([]Mutant, error) {
	listed, err := impl.Listed(root)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "scripts", "lab", "myweb", "mutants", "patches", "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, file := range files {
		m, err := mutant.Read(root, strings.TrimSuffix(filepath.Base(file), ".patch"))
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(listed, func(i impl.Implementation) bool { return i.Name == m.Of })
		if at < 0 {
			return nil, fmt.Errorf("mutant %s is of %q, which is not listed", m.Name, m.Of)
		}
		all = append(all, Mutant{Mutant: m, Unpatched: listed[at]})
	}
	return all, nil
}

// Build compiles the mutant into a folder. The chapter itself stays unchanged: the compiler uses patched copies of
// the files instead.
func (m *Mutant) Build(ctx context.Context, dir string) (impl.Implementation, error) {
	i, err := m.patched(ctx, dir)
	if err != nil {
		return i, err
	}
	return i.Build(ctx, dir)
}

// patched is the implementation with patched copies in the folder.
func (m *Mutant) patched(ctx context.Context, dir string) (impl.Implementation, error) {
	i := m.Unpatched
	i.Name, i.Title, i.BuildArgs = m.Name, m.Bug, nil
	sources := filepath.Join(dir, m.Name+".src")
	replace, err := m.copies(ctx, i.Folder, sources)
	if err == nil {
		err = i.Overlay(sources, replace)
	}
	if err != nil {
		return i, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if slices.Contains(m.Files(), i.Webhooks) {
		i.Webhooks = filepath.Join(sources, i.Webhooks)
	}
	return i, nil
}

// copies patches copies of the files, and returns the copies by the files that they replace.
func (m *Mutant) copies(ctx context.Context, folder, dir string) (map[string]string, error) {
	replace := map[string]string{}
	for _, name := range m.Files() {
		from, to := filepath.Join(folder, name), filepath.Join(dir, name)
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return nil, err
		}
		if filepath.Base(name) == filepath.Base(impl.CRD) {
			m.CRD = to
		} else {
			replace[from] = to
		}
	}
	return replace, m.Plant(ctx, dir)
}
