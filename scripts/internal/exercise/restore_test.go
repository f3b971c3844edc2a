package exercise

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestASavedCopyComesBack(t *testing.T) {
	root := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := Course{Workspace: Workspace{Root: root, Work: filepath.Join(root, "work"), Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}}
	first, second := Exercise{ID: "04.2", Chapter: "04-x"}, Exercise{ID: "04.3", Chapter: "04-x"}
	put := func(e Exercise, text string) {
		t.Helper()
		_, err := c.Put(e, map[string][]byte{"main.go": []byte(text)})
		if err == nil {
			err = c.GoOn(e)
		}
		testkit.Must(t, err)
	}
	put(first, "mine")
	put(second, "the starter of 04.3")
	copies, err := c.Saved()
	if err != nil || len(copies) != 1 || copies[0].Exercise != "04.2" || copies[0].Folder != "04-x" {
		t.Fatalf("%+v, %v", copies, err)
	}
	if _, err := c.Restore(copies[0]); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "work/04-x/main.go"))
	if err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
	if s, err := c.State(); err != nil || s.Current != "04.2" || s.Begun["04-x"] != "04.2" {
		t.Errorf("%+v, %v", s, err)
	}
	copies, err = c.Saved() // the replaced files have been saved, too, and are the newest copy
	if err != nil || len(copies) != 2 || copies[0].Exercise != "04.3" {
		t.Errorf("%+v, %v", copies, err)
	}
}

func TestThereIsNothingSaved(t *testing.T) {
	if copies, err := (Workspace{Work: filepath.Join(t.TempDir(), "work")}).Saved(); err != nil || len(copies) != 0 {
		t.Errorf("%v, %v", copies, err)
	}
}
