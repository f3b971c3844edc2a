package exercise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// solve puts the solution of an exercise and an added line into the reader's files, and records that they passed.
func solve(t *testing.T, c Course, e Exercise) {
	t.Helper()
	files, err := c.Files(e, e.Solution)
	testkit.Must(t, err)
	files["main.go"] = append(files["main.go"], "// mine\n"...)
	if _, err := c.Put(e, files); err != nil {
		t.Fatal(err)
	}
	s, err := c.State()
	testkit.Must(t, err)
	s.Take(e)
	s.Solved, s.Passed[e.ID] = c.Digest(e), "now"
	testkit.Must(t, c.SetState(s))
}

func TestAReaderKeepsHerOwnSolution(t *testing.T) {
	c := newCourse(t)
	before, e := find(t, c, "04.2"), find(t, c, "04.3")
	solve(t, c, before)
	if b, err := c.Begin(e, Always); err != nil || b != (Beginning{Kept: true}) {
		t.Errorf("the first time: %+v, %v", b, err)
	}
	mine := filepath.Join(c.Dir(e), "main.go")
	begun := testkit.Read(t, mine)
	testkit.Must(t, os.WriteFile(mine, []byte("package main\n"), 0o600))
	if b, err := c.Begin(e, Always); err != nil || b != (Beginning{Continued: true}) {
		t.Errorf("once more: %+v, %v", b, err)
	}
	if is, err := os.ReadFile(mine); err != nil || string(is) != "package main\n" {
		t.Errorf("the file of the reader is %q: %v", is, err)
	}
	if first, err := c.First(e); err != nil || string(first["main.go"]) != begun {
		t.Errorf("the exercise began with %q: %v", first["main.go"], err)
	}
	if _, err := c.Goto(e, Always); err != nil {
		t.Fatal(err)
	}
	starter, err := os.ReadFile(mine)
	if first, firstErr := c.First(e); errors.Join(err, firstErr) != nil || string(first["main.go"]) != string(starter) {
		t.Errorf("after goto, the exercise began with %q: %v", first["main.go"], errors.Join(err, firstErr))
	}
	testkit.Must(t, os.WriteFile(mine, []byte("package main\n"), 0o600))
	if _, err := c.Begin(find(t, c, "04.5"), func(Exercise) bool { return false }); !errors.Is(err, ErrNotReplaced) {
		t.Errorf("a reader who wants to keep her files: %v", err)
	}
	if b, err := c.Begin(find(t, c, "04.5"), Always); err != nil || b.Saved == "" {
		t.Errorf("files that were not judged are not saved: %+v, %v", b, err)
	}
	testkit.Must(t, os.RemoveAll(c.Dir(e)))
	if b, err := c.Begin(find(t, c, "04.5"), Always); err != nil || b != (Beginning{}) {
		t.Errorf("with an empty folder: %+v, %v", b, err)
	}
}

// TestAnUnchangedStarterIsReplacedWithoutAQuestion: its reader has nothing to lose.
func TestAnUnchangedStarterIsReplacedWithoutAQuestion(t *testing.T) {
	c := newCourse(t)
	asked := 0
	no := func(Exercise) bool { asked++; return false }
	for _, id := range []string{"04.3", "04.5", "04.2"} {
		if _, err := c.Begin(find(t, c, id), no); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if asked > 0 {
		t.Errorf("%d questions about an unchanged starter", asked)
	}
	main := filepath.Join(c.Dir(find(t, c, "04.2")), "main.go")
	testkit.Must(t, os.WriteFile(main, []byte(testkit.Read(t, main)+"// mine\n"), 0o600))
	if _, err := c.Begin(find(t, c, "04.3"), no); !errors.Is(err, ErrNotReplaced) || asked != 1 {
		t.Errorf("a changed starter: %v, %d questions", err, asked)
	}
}

func TestWhatIsNextAfterABug(t *testing.T) {
	c := newCourse(t)
	solve(t, c, find(t, c, "04.3"))
	bugs, err := Bugs(c.Root)
	testkit.Must(t, err)
	if _, err := c.Plant(t.Context(), bugs[0]); err != nil {
		t.Fatal(err)
	}
	for _, fixed := range []bool{false, true} {
		s, err := c.State()
		testkit.Must(t, err)
		if fixed {
			s.Passed[bugs[0].Exercise().ID] = "now"
		}
		if b, open := c.OpenBug(bugs, s); open == fixed || open && b.Mutant != bugs[0].Mutant {
			t.Errorf("fixed: %v, and the open bug is %q (%v)", fixed, b.Mutant, open)
		}
		var progress strings.Builder
		c.Progress(&progress, s)
		if next, ok := c.Next(s); !ok || next.ID != "04.4" || !strings.Contains(progress.String(), "next: 04.4") {
			t.Errorf("next is %s (%v), and progress says:\n%s", next.ID, ok, &progress)
		}
	}
}

func TestMoreOfTheLastResult(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.2")
	if _, err := c.Goto(e, Always); err != nil {
		t.Fatal(err)
	}
	r := Judgement{Own: []Result{{ID: "c", Verdict: "failed", Evidence: []string{"a", "b"}}}, Built: 1}
	testkit.Must(t, c.Remember(c.Digest(e), r))
	if last, ok := c.Last(c.Digest(e)); !ok || len(last.Own) != 1 || last.Failure() != r.Failure() || last.Built != 1 {
		t.Errorf("the files have not changed: %v, %+v", ok, last)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(c.Dir(e), "more.go"), []byte("package main\n"), 0o600))
	if _, ok := c.Last(c.Digest(e)); ok {
		t.Error("another file is there, and the last result is taken for that of these files")
	}
	testkit.Must(t, c.Remember(c.Digest(e), Judgement{Compile: errCompile}))
	if _, ok := c.Last(c.Digest(e)); ok {
		t.Error("a program that did not compile has a result")
	}
}

func TestAStateThatCannotBeRead(t *testing.T) {
	c := newCourse(t)
	testkit.Must(t, write(c.statePath(), []byte("{")))
	if _, err := c.State(); err == nil || !strings.Contains(err.Error(), "delete it, your programs stay") {
		t.Errorf("got %v", err)
	}
}
