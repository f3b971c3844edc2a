// Package mutants plants bugs in an operator, one at a time, to see that the lab catches them: a lab that has never
// caught a planted bug proves nothing.
package mutants

import (
	"context"
	"encoding/json"
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
	// CRD is the file of a patched CRD, set by Build; empty when the patch does not change the CRD.
	CRD string
}

// All reads the mutants of the checkout at root, by name.
func All(root string) ([]Mutant, error) {
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
		all = append(all, Mutant{Mutant: m})
	}
	return all, nil
}

// Build compiles the mutant into a folder. The chapter itself stays unchanged: the compiler uses patched copies of
// the files instead.
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
	if slices.Contains(m.Files(), i.Webhooks) {
		i.Webhooks = filepath.Join(dir, m.Name+".src", i.Webhooks)
	}
	return i, nil
}

// overlay patches copies of the files and returns the overlay file for the compiler.
func (m *Mutant) overlay(ctx context.Context, folder, dir string) (string, error) {
	replace := map[string]string{}
	for _, name := range m.Files() {
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
	if err := m.Plant(ctx, dir); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o600)
}
