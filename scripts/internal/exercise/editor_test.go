package exercise

import (
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestAnEditorFindsEverything: in the work folder, every import of a starter and of a solution is found by a lookup
// like that of an editor's language server.
func TestAnEditorFindsEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("it lists the packages of each exercise")
	}
	c := newCourse(t)
	listed := map[string]bool{}
	for _, e := range c.All {
		if filepath.Ext(e.File) != ".go" {
			continue
		}
		for _, of := range []string{e.Starter, e.Solution} {
			files, err := c.Files(e, of)
			testkit.Must(t, err)
			if _, err := c.Goto(e, Always); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Put(e, files); err != nil {
				t.Fatal(err)
			}
			digest := strings.TrimPrefix(c.Digest(e), e.ID)
			if listed[digest] {
				continue
			}
			listed[digest] = true
			out, err := c.Judge.command(t.Context(), c.Dir(e), "go", "list", "-e", "-deps", "-f",
				"{{with .Error}}{{.}}{{end}}", "./...").CombinedOutput()
			if wrong := strings.TrimSpace(string(out)); err != nil || wrong != "" {
				t.Errorf("%s %s: %v: %s", e.ID, of, err, wrong)
			}
		}
	}
	if len(listed) < 20 {
		t.Errorf("only %d folders were listed", len(listed))
	}
}
