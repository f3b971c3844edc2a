// Package stages holds only programs, each in its folder.
package stages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The limits for a reader: the lines of a program, and the lines that a stage adds to the stage before.
const (
	mostLines = 200
	mostAdded = 40
)

// TestEachStageCompiles: `go test` alone does not compile a program that has no test. go vet does, and links nothing.
func TestEachStageCompiles(t *testing.T) {
	if out, err := exec.Command("go", "vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestEachStageIsThePreviousPlusOneIdea(t *testing.T) {
	stages, err := filepath.Glob("[1-9]-*/main.go")
	if err != nil || len(stages) != 9 {
		t.Fatalf("%d stages, want 9: %v", len(stages), err)
	}
	before := ""
	for _, stage := range stages {
		t.Run(filepath.Dir(stage), func(t *testing.T) {
			text, err := os.ReadFile(stage)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > mostLines {
				t.Errorf("%d lines, at most %d", n, mostLines)
			}
			if n := added(before, string(text)); before != "" && n > mostAdded {
				t.Errorf("%d lines that the stage before does not have, at most %d", n, mostAdded)
			}
			before = string(text)
		})
	}
}

// added returns how many lines of a text are not in another text, in order: the lines that diff marks with "+".
func added(from, to string) int {
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	common := make([]int, len(b)+1) // of the rest of a and b: the longest common sequence
	for i := range a {
		diagonal := 0
		for j := range b {
			longest := max(common[j], common[j+1])
			if a[i] == b[j] {
				longest = diagonal + 1
			}
			diagonal, common[j+1] = common[j+1], longest
		}
	}
	return len(b) - common[len(b)]
}
