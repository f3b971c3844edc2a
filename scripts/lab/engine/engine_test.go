// Package engine has no code: these tests ensure that the packages below it depend on no particular operator.
package engine

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// name is the name of the workshop's operator, split so that this file does not contain it.
var name = "my" + "web"

// files calls f for each file below this folder.
func files(t *testing.T, f func(path string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found++
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d files: what was looked at?", found)
	}
}

func TestTheEngineNamesNoOperator(t *testing.T) {
	files(t, func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range bytes.Split(data, []byte("\n")) {
			if strings.Contains(strings.ToLower(string(line)), name) {
				t.Errorf("%s:%d: the engine is for any operator: %s", path, n+1, line)
			}
		}
	})
}

func TestTheEngineImportsOnlyItself(t *testing.T) {
	const lab = "example.com/operator-workshop/scripts/lab/"
	files(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			if rest, ours := strings.CutPrefix(imported, lab); ours && !strings.HasPrefix(rest, "engine/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	})
}
