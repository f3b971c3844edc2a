package exercise

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/internal/translation"
)

// undefined matches the compiler's message about a name before a dot, or about another name.
var undefined = regexp.MustCompile(`(?m): undefined: (\w+)$`)

// withImports adds to an error of the compiler the import of each package that a file uses and does not import. A
// package has the name that the solution or another file of the chapter gives it.
func (w Workspace) withImports(e Exercise, err error) error {
	var missing []string
	for _, match := range undefined.FindAllStringSubmatch(err.Error(), -1) {
		if line := w.importOf(e, match[1]); line != "" && !slices.Contains(missing, line) {
			missing = append(missing, line)
		}
	}
	for _, line := range missing {
		err = fmt.Errorf("%w\n%s", err, fmt.Sprintf(translation.Mark("The import is missing: %s"), line))
	}
	return err
}

// importOf returns the line that imports a package under a name, or nothing when no file imports such a package.
func (w Workspace) importOf(e Exercise, name string) string {
	if e.Solution != "" {
		files, _ := w.Files(e, e.Solution) // without a solution, the chapter is enough
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if line := imports(string(files[file]))[name]; line != "" {
				return line
			}
		}
	}
	count := map[string]int{}
	_ = filepath.WalkDir(filepath.Join(w.Root, e.Chapter), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		data, err := readFile(file, file)
		if line := imports(string(data))[name]; line != "" {
			count[line]++
		}
		return err
	})
	// The most frequent one; of equals, the first of the alphabet.
	best := ""
	for _, line := range slices.Sorted(maps.Keys(count)) {
		if count[line] > count[best] {
			best = line
		}
	}
	return best
}

// imports returns the imports of a Go file, as lines of Go, by the names under which the file uses them.
func imports(text string) map[string]string {
	all := map[string]string{}
	for _, one := range importsOf(text) {
		from, _ := strconv.Unquote(one.Path.Value)
		name, line := path.Base(from), one.Path.Value
		if one.Name != nil {
			name, line = one.Name.Name, one.Name.Name+" "+line
		}
		all[name] = line
	}
	return all
}

// importsOf returns the imports of a Go file. A text in another language has none.
func importsOf(text string) []*ast.ImportSpec {
	parsed, _ := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if parsed == nil {
		return nil
	}
	return parsed.Imports
}
