package exercise

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestPagesNameTheirExercises: a reader finds each exercise on a page of its chapter, with its title and its minutes.
func TestPagesNameTheirExercises(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	all, err := Load(root)
	testkit.Must(t, err)
	for _, e := range all {
		command := "`make exercise EX=" + e.ID + "`"
		line := lineWith(t, filepath.Join(root, e.Chapter), command)
		minutes, inTable := fmt.Sprintf("(%d minutes)", e.Minutes), fmt.Sprintf("| %d |", e.Minutes)
		if !strings.Contains(strings.ToLower(line), strings.ToLower(e.Title)) ||
			!strings.Contains(line, minutes) && !strings.Contains(line, inTable) {
			t.Errorf("no page of %s has a line with %q, %s and %s; found %q", e.Chapter, e.Title, minutes, command, line)
		}
	}
}

// lineWith returns the line with a text on a folder's pages.
func lineWith(t *testing.T, dir, text string) (found string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		for line := range strings.Lines(string(page)) {
			if strings.Contains(line, text) {
				found = line
			}
		}
		return err
	})
	testkit.Must(t, err)
	return found
}
