package exercise

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// A Place is a line of the reader's file on which the last check has something to say.
type Place struct {
	Line int `json:"line"`
	// Column is 0 when the whole line is meant.
	Column int `json:"column"`
	// Says is the error of the compiler. It is empty at a place of which only the hint speaks.
	Says string `json:"says"`
}

// Places returns the places of the last check's failure in the reader's file, when the check was about the present
// files: the errors of the compiler, or the place that the hint of a known wrong answer has.
func (c Course) Places(e Exercise, s State, text string) (all []Place) {
	if s.Current != e.ID || s.Failure == "" || s.Judged != c.Digest(e) {
		return nil
	}
	found := regexp.MustCompile(`(?m)^\s*`+regexp.QuoteMeta(filepath.ToSlash(e.Path()))+`:(\d+)(?::(\d+))?: (.*(?:\n\t.*)*)`).
		FindAllStringSubmatch(s.Failure, -1)
	for _, one := range found {
		line, _ := strconv.Atoi(one[1])
		column, _ := strconv.Atoi(one[2])
		all = append(all, Place{Line: line, Column: column, Says: one[3]})
	}
	if len(all) > 0 {
		return all
	}
	cause := c.Cause(e, s.Failure)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	at := regexp.MustCompile(`(?m)`+cause.Wrong.Source).FindAllStringIndex(text, 2)
	if cause.Wrong.Source != "" && len(at) == 1 { // with several, it is not certain which one is meant
		return []Place{{Line: 1 + strings.Count(text[:at[0][0]], "\n")}}
	}
	if some := ownOf(shown(cause.Differs)); len(some) > 0 && some[0].File == e.File {
		return []Place{{Line: some[0].Line}}
	}
	return nil
}

// Edited returns the files that a reader edits, by their names in the folder of the exercise: the main file, then the
// others of its kind with which the exercise began.
func (c Course) Edited(e Exercise) ([]string, error) {
	if e.ID == CapstoneID { // its specification may have a mistake
		return []string{e.File, "types.go"}, nil
	}
	files, err := c.First(e)
	names := []string{e.File}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != e.File && filepath.Ext(name) == filepath.Ext(e.File) && !e.isGenerated(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// Beside returns the files that help to understand the reader's file: the files of its folder, and the packages of the
// chapter that it or its solution imports. The names are paths in the checkout.
func (w Workspace) Beside(e Exercise, text string) (map[string]string, error) {
	mine, err := w.Written(e)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for name, data := range mine {
		all[filepath.Join("work", e.folder(), name)] = string(data)
	}
	mod, err := os.ReadFile(filepath.Join(w.Root, e.Chapter, "go.mod"))
	if err != nil {
		return all, nil
	}
	paths := imported(text)
	if e.Solution != "" {
		solution, err := w.Files(e, e.Solution)
		if err != nil {
			return nil, err
		}
		paths = append(paths, imported(string(solution[e.File]))...)
	}
	for _, path := range paths {
		below, found := strings.CutPrefix(path, modfile.ModulePath(mod)+"/")
		if !found || !filepath.IsLocal(below) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(w.Root, e.Chapter, below, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_") {
				continue
			}
			data, err := readFile(file, file)
			if err != nil {
				return nil, err
			}
			all[filepath.Join(e.Chapter, below, name)] = string(data)
		}
	}
	return all, nil
}

// imported returns the packages that a file imports.
func imported(text string) (paths []string) {
	for _, one := range importsOf(text) {
		path, _ := strconv.Unquote(one.Path.Value)
		paths = append(paths, path)
	}
	return paths
}
