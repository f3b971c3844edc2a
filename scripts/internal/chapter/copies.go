package chapter

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/strictyaml"
)

// A copied file: chapters stand alone, so each chapter has a copy of a file that several chapters need.
type copied struct {
	// From is the path of the source in the repository, a file or a folder.
	From string `json:"from"`
	// To are the paths that must have the same content; a copy of a folder has all its files and no others. Tests and
	// pages of a folder stay beside the source: the tests also prove the copies, which are equal.
	To []string `json:"to"`
	// As is "manifest" when a generator makes the copies and only the meaning must be equal.
	As string `json:"as,omitempty"`
	// Imports are packages, by their path in the module of the source, that have another path in the modules
	// of the copies. The imports of a copy are sorted anew.
	Imports map[string]string `json:"imports,omitempty"`
}

func readCopies(root string) ([]copied, error) {
	var list, files []copied
	if err := strictyaml.Read(filepath.Join(root, "scripts", "sync.yaml"), &list); err != nil {
		return nil, err
	}
	for _, c := range list {
		each, err := c.files(root)
		if err != nil {
			return nil, err
		}
		files = append(files, each...)
	}
	return files, nil
}

// files returns the files of a folder, or the file itself. A file has no source when it is only in the copy of a
// folder.
func (c copied) files(root string) (all []copied, err error) {
	if info, err := os.Stat(filepath.Join(root, c.From)); err != nil || !info.IsDir() {
		return []copied{c}, err
	}
	names := map[string]bool{}
	for _, dir := range append([]string{c.From}, c.To...) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if name := entry.Name(); !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".md") {
				names[name] = true
			}
		}
	}
	for name := range names {
		file := copied{From: filepath.Join(c.From, name), As: c.As, Imports: c.Imports}
		for _, to := range c.To {
			file.To = append(file.To, filepath.Join(to, name))
		}
		all = append(all, file)
	}
	return all, nil
}

// stale returns, for each path that differs from its source, the bytes that the path should hold; nil for a file that
// should not exist.
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
		gone := errors.Is(err, os.ErrNotExist) && len(c.To) > 0
		if err != nil && !gone {
			return nil, err
		}
		for _, to := range c.To {
			have, readErr := os.ReadFile(filepath.Join(root, to))
			if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
				return nil, readErr
			}
			wanted, err := c.rewrite(root, want, to)
			if err != nil {
				return nil, err
			}
			switch there := readErr == nil; {
			case gone && there:
				found[to] = nil
			case !gone && (!there || !bytes.Equal(have, wanted)):
				found[to] = wanted
			}
		}
	}
	return found, nil
}

// rewrite returns the content of a copy: the source, with the names of the copy's module and packages.
func (c copied) rewrite(root string, data []byte, to string) ([]byte, error) {
	from, own := string(module(root, c.From)), string(module(root, to))
	for path, other := range c.Imports {
		data = bytes.ReplaceAll(data, []byte(`"`+from+"/"+path+`"`), []byte(`"`+own+"/"+other+`"`))
	}
	data = bytes.ReplaceAll(data, []byte(from), []byte(own))
	if len(c.Imports) == 0 {
		return data, nil
	}
	return format.Source(data)
}

// module returns the path of the module that a file is in. Go code names the module when it imports another package of
// it. Without a module, module returns a word that occurs in no file.
func module(root, path string) []byte {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if data, err := os.ReadFile(filepath.Join(root, dir, "go.mod")); err == nil {
			return []byte(modfile.ModulePath(data))
		}
	}
	return []byte("\x00")
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
		if data == nil {
			if err := os.Remove(target); err != nil {
				return written, err
			}
			continue
		}
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
