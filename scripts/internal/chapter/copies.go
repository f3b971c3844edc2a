package chapter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

// A copied file: chapters stand alone, so what several need lies in each.
type copied struct {
	// From is the path of the source in the repository.
	From string `json:"from"`
	// To are the paths that must hold the same.
	To []string `json:"to"`
	// As is "manifest" when a generator makes the copies and only the meaning must be the same.
	As string `json:"as,omitempty"`
}

func readCopies(root string) ([]copied, error) {
	data, err := os.ReadFile(filepath.Join(root, "scripts", "sync.yaml"))
	if err != nil {
		return nil, err
	}
	var list []copied
	return list, yaml.UnmarshalStrict(data, &list)
}

// stale returns, for each path that differs from its source, the bytes that it should hold.
func stale(root string) (map[string][]byte, error) {
	list, err := readCopies(root)
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, c := range list {
		if c.As != "" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(root, c.From))
		if err != nil {
			return nil, err
		}
		for _, to := range c.To {
			have, err := os.ReadFile(filepath.Join(root, to))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			if err != nil || !bytes.Equal(have, want) {
				found[to] = want
			}
		}
	}
	return found, nil
}

// CheckCopies returns an error that names every copy that differs from its source in scripts/sync.yaml.
func CheckCopies(root string) error {
	found, err := stale(root)
	for path := range found {
		err = errors.Join(err, fmt.Errorf("%s differs from its source: change the source, then `make sync`", path))
	}
	return errors.Join(err, checkManifests(root))
}

// checkManifests compares the manifests that generators make with the hand-written ones.
func checkManifests(root string) error {
	list, err := readCopies(root)
	for _, c := range list {
		if c.As != "manifest" {
			continue
		}
		want, readErr := readManifest(filepath.Join(root, c.From))
		err = errors.Join(err, readErr)
		for _, to := range c.To {
			have, readErr := readManifest(filepath.Join(root, to))
			err = errors.Join(err, readErr)
			if diff := cmp.Diff(want, have); readErr == nil && diff != "" {
				err = errors.Join(err, fmt.Errorf("%s does not mean what %s says:\n%s", to, c.From, diff))
			}
		}
	}
	return err
}

func readManifest(path string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	manifest := map[string]any{}
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if metadata, ok := manifest["metadata"].(map[string]any); ok {
		delete(metadata, "annotations")
	}
	return manifest, nil
}

// Sync makes every copy equal to its source and returns the paths that it wrote.
func Sync(root string) (written []string, err error) {
	found, err := stale(root)
	for path, data := range found {
		target := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return written, err
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, err
}

// CheckVersions compares every go.mod of the repository with scripts/versions.yaml. The error names each
// module that strays.
func CheckVersions(root string) error {
	var pins struct {
		Go      string            `json:"go"`
		Modules map[string]string `json:"modules"`
	}
	data, err := os.ReadFile(filepath.Join(root, "scripts", "versions.yaml"))
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, &pins); err != nil {
		return fmt.Errorf("scripts/versions.yaml: %w", err)
	}
	dirs, err := All(root)
	if err != nil {
		return err
	}
	for _, dir := range append(dirs, "scripts", "scripts/tools") {
		name := filepath.Join(dir, "go.mod")
		data, readErr := os.ReadFile(filepath.Join(root, name))
		if readErr != nil {
			return readErr
		}
		file, parseErr := modfile.Parse(name, data, nil)
		if parseErr != nil {
			return parseErr
		}
		if file.Go.Version != pins.Go {
			err = errors.Join(err, fmt.Errorf("%s says go %s, scripts/versions.yaml says %s", name, file.Go.Version, pins.Go))
		}
		for _, r := range file.Require {
			if want := pins.Modules[r.Mod.Path]; want != "" && r.Mod.Version != want && !replaced(file, r.Mod.Path, want) {
				err = errors.Join(err, fmt.Errorf("%s requires %s, scripts/versions.yaml says %s", name, r.Mod, want))
			}
		}
		for _, r := range file.Replace {
			if modfile.IsDirectoryPath(r.New.Path) {
				err = errors.Join(err, fmt.Errorf("%s replaces %s by the folder %s: a module must stand alone", name, r.Old.Path, r.New.Path))
			}
		}
	}
	return err
}

// replaced reports whether a replace line gives the module the wanted version.
func replaced(file *modfile.File, path, want string) bool {
	for _, r := range file.Replace {
		if r.Old.Path == path && r.New.Version == want {
			return true
		}
	}
	return false
}
