package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A tag of an action can be moved to other code, a commit cannot.
func TestWorkflowsNameActionsByCommit(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %q", err, files)
	}
	pinned := regexp.MustCompile(`uses: (\./\S+|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)\n$`) // or of this repository
	for _, file := range files {
		data := testkit.Read(t, file)
		for line := range strings.Lines(data) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: not a commit with its version as a comment: %s", file, line)
			}
		}
	}
}
