package examine

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These tests ensure that this module depends on no other module of its repository, and on no particular operator.

// sources calls f for each source file of this module; the pages, the gallery and the CI recipe are not sources.
func sources(t *testing.T, f func(path string, data []byte)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "gallery" || path == "ci" || path == "bin" || path == "out" || path == "programs/files"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) == ".md" || !d.Type().IsRegular():
			return nil
		}
		found++
		data, err := os.ReadFile(path)
		if err == nil {
			f(path, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("only %d files were examined", found)
	}
}

func TestExamineNamesNoOperator(t *testing.T) {
	// The operator and the commands of the workshop, split so that this file does not contain them.
	names := []string{"my" + "web", "make" + " up", "make" + " down", "scripts" + "/workshop"}
	sources(t, func(path string, data []byte) {
		if path == "scaffolded/scaffold.sh" { // it uses the generators of the workshop
			return
		}
		for n, line := range strings.Split(strings.ToLower(string(data)), "\n") {
			if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(line, name) }) {
				t.Errorf("%s:%d: examine is for any operator, and has no command of the workshop: %s", path, n+1, line)
			}
		}
	})
}

func TestExamineImportsNothingOfTheWorkshop(t *testing.T) {
	const workshop, own = "example.com/operator-workshop", "example.com/operator-workshop/scripts/examine"
	sources(t, func(path string, data []byte) {
		if filepath.Ext(path) != ".go" {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, data, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(imported, workshop) && imported != own && !strings.HasPrefix(imported, own+"/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	})
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(mod), workshop) != 1 || strings.Contains(string(mod), "replace") {
		t.Errorf("go.mod requires another module of the repository, or replaces one:\n%s", mod)
	}
}
