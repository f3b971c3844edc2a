// Package chapter finds the chapters of a workshop: the folders with a go.mod and a README.
package chapter

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// All returns the chapters of a repository by their folders, in reading order: a chapter is a folder with its own
// module. A module inside a chapter belongs to that chapter.
func All(root string) ([]string, error) {
	var found []string
	for _, pattern := range []string{"[0-9][0-9]-*", "[0-9][0-9]-*/*"} {
		dirs, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			if !isModule(dir) || isModule(filepath.Dir(dir)) {
				continue
			}
			name, err := filepath.Rel(root, dir)
			if err != nil {
				return nil, err
			}
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// ModulesOf returns the folders of the modules of chapters: each chapter, and the modules inside it.
func ModulesOf(root string, chapters []string) ([]string, error) {
	all, err := Modules(root)
	return slices.DeleteFunc(all, func(dir string) bool { return !Within(chapters, dir) }), err
}

// Modules returns the folders of all Go modules of a repository, also those inside a chapter.
func Modules(root string) (found []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (name == "bin" || name == "work" || name == "out" ||
			strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			found = append(found, dir)
			return err
		}
		return nil
	})
	return found, err
}

// Select returns the chapters that prefixes of folder names, separated by commas, select: "1", "01" and "01-c" select
// 01-crd; "05/mem" selects 05-operator-sdk/memcached-operator, and "05" all chapters of that folder. Without a prefix,
// Select returns all chapters.
func Select(root, prefixes string) ([]string, error) {
	all, err := All(root)
	if err != nil {
		return nil, err
	}
	return choose(all, prefixes)
}

// SelectKind does the same for the tests on kind: there, a folder inside a chapter's folder may have a test without a
// module.
func SelectKind(root, prefixes string) ([]string, error) {
	all, err := All(root)
	if err != nil {
		return nil, err
	}
	scripts, err := filepath.Glob(filepath.Join(root, "[0-9][0-9]-*", "*", "kind.sh"))
	if err != nil {
		return nil, err
	}
	for _, script := range scripts {
		name, err := filepath.Rel(root, filepath.Dir(script))
		if err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return choose(slices.Compact(all), prefixes)
}

func choose(all []string, prefixes string) ([]string, error) {
	if prefixes == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for prefix := range strings.SplitSeq(prefixes, ",") {
		typed, known := prefix, false
		if oneDigit.MatchString(prefix) {
			prefix = "0" + prefix
		}
		for _, name := range all {
			if hasPrefix(name, prefix) {
				wanted[name], known = true, true
			}
		}
		if !known {
			return nil, fmt.Errorf("CH=%s: no chapter begins so; there are %s", typed, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !wanted[name] }), nil
}

// oneDigit is a chapter's number without the leading zero.
var oneDigit = regexp.MustCompile(`^[0-9]($|[^0-9])`)

// hasPrefix compares paths part by part, so that a prefix of each folder name is enough.
func hasPrefix(name, prefix string) bool {
	names, prefixes := strings.Split(name, "/"), strings.Split(strings.TrimSuffix(prefix, "/"), "/")
	if len(prefixes) > len(names) {
		return false
	}
	for i, p := range prefixes {
		if !strings.HasPrefix(names[i], p) {
			return false
		}
	}
	return true
}

// Page returns the folder whose page a prefix selects: a chapter's folder, or the common folder of all selected
// chapters.
func Page(root, prefix string) (string, error) {
	some, err := Select(root, prefix)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(some[0])
	elsewhere := func(chapter string) bool { return filepath.Dir(chapter) != folder }
	if _, err := os.Stat(filepath.Join(root, folder, "README.md")); err == nil && folder != "." && len(some) > 1 &&
		!slices.ContainsFunc(some, elsewhere) {
		return folder, nil
	}
	if len(some) > 1 {
		return "", fmt.Errorf("CH=%s means more than one chapter: %s", prefix, strings.Join(some, ", "))
	}
	return some[0], nil
}

// Within reports whether a path is in one of the folders.
func Within(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return dir == "." || path == dir || strings.HasPrefix(path, dir+"/")
	})
}

// Holds reports whether a folder belongs to the selected chapters: it is a selected chapter, is inside one, or contains
// chapters all of which are selected, as 05-operator-sdk may.
func Holds(selected, all []string, dir string) bool {
	if Within(selected, dir) {
		return true
	}
	inside := slices.DeleteFunc(slices.Clone(all), func(chapter string) bool { return !Within([]string{dir}, chapter) })
	return len(inside) > 0 && !slices.ContainsFunc(inside, func(chapter string) bool {
		return !slices.Contains(selected, chapter)
	})
}
