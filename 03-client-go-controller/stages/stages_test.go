// Package stages checks what the chapter page promises of the stages: each stage is short, and adds one idea.
package stages

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

const (
	maxLines = 200 // of a file
	maxAdded = 42  // lines of code that a stage adds, without imports, comments, and lines of braces alone
)

// stageFolders returns the folders of the stages, in their order.
func stageFolders(t *testing.T) (folders []string) {
	t.Helper()
	found, err := filepath.Glob("*/main.go")
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no stage: %v", err)
	}
	for _, file := range found {
		folders = append(folders, filepath.Dir(file))
	}
	return folders
}

func TestAStageAddsOneIdea(t *testing.T) {
	before := map[string]int{}
	for n, folder := range stageFolders(t) {
		now, added := map[string]int{}, 0
		for _, line := range codeOf(t, folder) {
			if now[line]++; now[line] > before[line] {
				added++
			}
		}
		t.Logf("%s adds %d lines", folder, added)
		if n > 0 && added > maxAdded {
			t.Errorf("%s adds %d lines to the stage before, want at most %d", folder, added, maxAdded)
		}
		before = now
	}
}

// codeOf returns the lines of code in a folder, and fails the test when a file is too long.
func codeOf(t *testing.T, folder string) (code []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no program in %s: %v", folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d", file, n, maxLines)
		}
		_, body, _ := strings.Cut(string(data), "\n)\n") // after the imports
		for line := range strings.Lines(body) {
			if line = strings.TrimSpace(line); strings.ContainsFunc(line, unicode.IsLetter) && !strings.HasPrefix(line, "//") {
				code = append(code, line)
			}
		}
	}
	return code
}
