package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"example.com/operator-workshop/scripts/internal/mutant"
	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/translation"
)

func TestListsAreRead(t *testing.T) {
	c := newCourse(t)
	for _, e := range c.All {
		if _, err := c.trialsWithoutFiles(e); err != nil {
			t.Errorf("%s: %v", e.ID, err)
		}
	}
	for _, chapter := range []string{"03-client-go-controller", "04-controller-runtime"} {
		stages, err := filepath.Glob(filepath.Join(c.Root, chapter, "stages", "[1-9]-*"))
		testkit.Must(t, err)
		for _, stage := range stages {
			if !slices.ContainsFunc(Stages(c.All, chapter), func(e Exercise) bool {
				return e.Solution == "stages/"+filepath.Base(stage)
			}) {
				t.Errorf("no exercise leads to %s", stage)
			}
		}
	}
}

// TestNumbersHaveNoGaps: a reader who is at 01.8 finds 01.9 next.
func TestNumbersHaveNoGaps(t *testing.T) {
	last := map[string]int{}
	for _, e := range newCourse(t).All {
		chapter, number, _ := strings.Cut(e.ID, ".")
		if last[chapter]++; number != fmt.Sprint(last[chapter]) {
			t.Errorf("%s comes where %s.%d should", e.ID, chapter, last[chapter])
		}
	}
}

// trialsWithoutFiles makes every wrong answer from its solution, so a changed solution changes the wrong answers, too.
func (c Course) trialsWithoutFiles(e Exercise) (n int, err error) {
	solution, err := c.Files(e, e.Solution)
	if err != nil {
		return 0, err
	}
	for _, w := range e.Wrong {
		if _, err := w.apply(e, solution); err != nil {
			return n, fmt.Errorf("wrong answer %q: %w", w.Name, err)
		}
		n++
	}
	return n, nil
}

func TestADescriptionThatIsNotComplete(t *testing.T) {
	root := t.TempDir()
	for name, data := range map[string]string{"04-x/go.mod": "", "04-x/a/main.go": "", "04-x/b/main.go": ""} {
		testkit.Must(t, write(filepath.Join(root, name), []byte(data)))
	}
	whole := `exercises:
- {id: "04.1", title: T, minutes: 5, story: S, starter: a, solution: b, file: main.go, lab: [x], fails: y,
  hints: {nudge: n, explanation: e, line: l},
  wrong: [{name: a, replace: [{old: a, new: b}], says: x, hint: h},
    {name: b, replace: [{old: a, new: b}], lacks: x, hint: h}]}
`
	for change, want := range map[string]string{
		"->":                     "",
		"title: T->titel: T":     "titel",
		"minutes: 5->minutes: 0": "minutes are missing",
		"04.1->05.1":             "it is in the list of 04-x",
		"lab: [x]->lab: []":      "exactly one of lab, test, crd and specification",
		"starter: a->starter: z": `"z" is not in the chapter`,
		"says: x->says: (":       "missing closing )",
		", lacks: x->":           "wants says, source or lacks",
		"line: l->line: ''":      "line is missing",
	} {
		old, now, _ := strings.Cut(change, "->")
		testkit.Must(t, write(filepath.Join(root, "04-x", File), []byte(strings.Replace(whole, old, now, 1))))
		_, err := Load(root)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
}

func TestWhatComesBefore(t *testing.T) {
	all := []Exercise{{ID: "03.1", Chapter: "03"}, {ID: "04.1", Chapter: "04"}, {ID: "04.2", Chapter: "04"},
		{ID: "04.3", Chapter: "04", Fresh: true}, {ID: "04.4", Chapter: "04"}}
	for id, want := range map[string]string{"03.1": "", "04.1": "", "04.2": "04.1", "04.3": "", "04.4": "04.3"} {
		e, err := Find(all, id)
		testkit.Must(t, err)
		var got []string
		for _, b := range before(all, e) {
			got = append(got, b.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("before %s: %v, want %q", id, got, want)
		}
	}
}

func TestEveryMutantIsABug(t *testing.T) {
	c := newCourse(t)
	bugs, err := Bugs(c.Root)
	testkit.Must(t, err)
	patches, err := filepath.Glob(filepath.Join(c.Root, "scripts/lab/myweb/mutants/patches/*.patch"))
	if err != nil || len(patches) != len(bugs) {
		t.Errorf("%d bugs, %d mutants: %v", len(bugs), len(patches), err)
	}
	for of, files := range core {
		_, all, err := c.original(Bug{planted: mutant.Mutant{Of: of}})
		for _, file := range files {
			if err != nil || all[file] == nil {
				t.Errorf("the operator of %s has no %s: %v", of, file, err)
			}
		}
	}
	seen := map[string]bool{}
	for _, b := range bugs {
		if seen[b.Mutant] || b.Level < 1 || b.Level > 3 || b.Symptom == "" || len(b.planted.CaughtBy) == 0 {
			t.Errorf("%s: twice, or without a level from 1 to 3, a symptom or checks", b.Mutant)
		}
		seen[b.Mutant] = true
		for _, file := range b.planted.Files() {
			if b.Level == 1 && !slices.Contains(core[b.planted.Of], file) {
				t.Errorf("%s is of level 1, and its fault is in %s, which is not in the core", b.Mutant, file)
			}
		}
		if _, err := c.Plant(t.Context(), b); err != nil {
			t.Errorf("%s: %v", b.Mutant, err)
		}
	}
}

func TestBugsAreChosen(t *testing.T) {
	bugs := []Bug{{Mutant: "a", Level: 1}, {Mutant: "b", Level: 2}, {Mutant: "c", Level: 2}}
	done := State{Passed: map[string]string{"bug/b": "now"}}
	for _, test := range []struct {
		number, level int
		want          string
	}{{2, 0, "b"}, {0, 1, "a"}, {0, 2, "c"}, {4, 0, "there are bugs 1 to 3"}, {0, 5, "the levels are"}} {
		b, err := ChooseBug(bugs, done, test.number, test.level)
		if got := b.Mutant + fmt.Sprint(err); !strings.Contains(got, test.want) {
			t.Errorf("N=%d LEVEL=%d: %s", test.number, test.level, got)
		}
	}
}

func TestOutputFits(t *testing.T) {
	c := newCourse(t)
	var out strings.Builder
	languages, err := translation.Spoken(c.Root)
	testkit.Must(t, err)
	for _, language := range languages {
		said, err := translation.Catalogue(c.Root, language.Name, "exercises", nil)
		testkit.Must(t, err)
		for _, e := range c.All {
			e = e.In(said)
			e.PrintStory(&out)
			for n := range 3 {
				text, last := c.Hint(e, State{Hints: n})
				PrintHint(&out, text, e.AfterHint(last))
			}
		}
	}
	bugs, err := Bugs(c.Root)
	testkit.Must(t, err)
	for n, b := range bugs {
		b.Print(&out, n+1)
	}
	c.Progress(&out, State{})
	for line := range strings.Lines(out.String()) {
		if columns := uniseg.StringWidth(strings.TrimRight(line, "\n")); columns > 100 {
			t.Errorf("%d columns: %s", columns, line)
		}
	}
}

func TestCompileErrorsAreAsGoSaysThem(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.2")
	if _, err := c.Goto(e, Always); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.Dir(e), "main.go")
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, append(data, "\nfunc x() { y() }\n"...), 0o600))
	r, err := c.Check(t.Context(), e)
	if err != nil || r.Compile == nil || r.Passed() {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, want := range []string{"work/04-controller-runtime/main.go:", "undefined: y",
		"Open work/04-controller-runtime/main.go at line"} {
		if !strings.Contains(r.Compile.Error(), want) {
			t.Errorf("%q does not say %q", r.Compile, want)
		}
	}
	testkit.Must(t, os.WriteFile(filepath.Join(c.Dir(e), "go.mod"), []byte("module x\n\ngo 1.99\n"), 0o600))
	if r, err = c.Check(t.Context(), e); err != nil || r.Compile == nil || !strings.Contains(r.Compile.Error(),
		"Delete work/04-controller-runtime/go.mod: `make check` writes it") {
		t.Errorf("a go.mod that asks for another Go: %v, %v", r.Compile, err)
	}
	testkit.Must(t, os.Remove(filepath.Join(c.Dir(e), "go.mod")))
	if r, err = c.Check(t.Context(), e); err != nil || r.Compile == nil || !strings.Contains(r.Compile.Error(), "undefined: y") {
		t.Errorf("without go.mod: %v, %v", r.Compile, err)
	}
	testkit.Must(t, os.Remove(filepath.Join(c.Dir(e), "go.sum")))
	if r, err = c.Check(t.Context(), e); err != nil || r.Compile == nil || !strings.Contains(r.Compile.Error(),
		"Delete work/04-controller-runtime/go.mod: `make check` writes it and go.sum again") {
		t.Errorf("without go.sum: %v, %v", r.Compile, err)
	}
}

// TestACompileErrorNamesTheMissingImport: the solution or the chapter imports the package under this name. The capstone has
// no solution.
func TestACompileErrorNamesTheMissingImport(t *testing.T) {
	c := newCourse(t)
	for _, e := range []Exercise{find(t, c, "04.2"), Capstone} {
		said := c.withImports(e, errors.New("main.go:1:2: undefined: corev1\nmain.go:3:2: undefined: metav1\n"+
			"main.go:4:2: undefined: corev1\nmain.go:5:2: undefined: ctrl\nmain.go:6:1: undefined: controllerutil\n"+
			"main.go:7:1: undefined: web\nmain.go:8:2: undefined: client.Clint")).Error()
		_, said, _ = strings.Cut(said, "Clint\n")
		const want = `The import is missing: corev1 "k8s.io/api/core/v1"
The import is missing: metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
The import is missing: ctrl "sigs.k8s.io/controller-runtime"
The import is missing: "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"`
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s: %s", e.ID, diff)
		}
	}
	if _, err := c.Goto(find(t, c, "04.3"), Always); err != nil {
		t.Fatal(err)
	}
	e := find(t, c, "04.3")
	path := filepath.Join(c.Dir(e), "main.go")
	testkit.Must(t, os.WriteFile(path, []byte(testkit.Read(t, path)+"\nvar _ corev1.Pod\n"), 0o600))
	r, err := c.Check(t.Context(), e)
	testkit.Must(t, err)
	testkit.Must(t, c.Judged(e, State{Current: e.ID, Passed: map[string]string{}}, "x", r))
	s, err := c.State()
	testkit.Must(t, err)
	const line = `The import is missing: corev1 "k8s.io/api/core/v1"`
	if !strings.Contains(s.Card.Lines[0].Text, line) {
		t.Errorf("the card is %+v", s.Card)
	}
	if hint, _ := c.NoHint(e, s); !strings.Contains(hint, `Add this line to its imports: corev1 "k8s.io/api/core/v1"`) {
		t.Errorf("the hint is %s", hint)
	}
}

// TestABugFitsTheReader: the level rises after three bugs of a level; a chapter without a bug of that level is not
// chosen.
func TestABugFitsTheReader(t *testing.T) {
	bugs, err := Bugs(newCourse(t).Root)
	testkit.Must(t, err)
	fixed := func(levels ...int) map[string]string {
		passed := map[string]string{}
		for _, level := range levels {
			for n, done := 0, 0; done < rises; n++ {
				if bugs[n].Level == level {
					passed[bugs[n].Exercise().ID], done = "now", done+1
				}
			}
		}
		return passed
	}
	for name, test := range map[string]struct {
		s     State
		level int
		of    string
	}{
		"at the beginning":           {State{}, 1, "04"},
		"of chapter 03":              {State{Exercise: "03.2"}, 1, "04"},
		"after bugs of level 1":      {State{Exercise: "04.6", Passed: fixed(1)}, 2, "04"},
		"of chapter 03, and level 3": {State{Exercise: "03.8", Passed: fixed(1, 2)}, 3, "03"},
		"beyond the last level":      {State{Exercise: "06.1", Passed: fixed(1, 2, 3)}, 3, "04"},
	} {
		for range 20 {
			b, err := ChooseBug(bugs, test.s, 0, 0)
			if err != nil || b.Level != test.level || b.planted.Of != test.of || test.s.Passed[b.Exercise().ID] != "" {
				t.Errorf("%s: %s of %s, level %d, %v", name, b.Mutant, b.planted.Of, b.Level, err)
			}
		}
	}
}

func TestEachBugHasHints(t *testing.T) {
	bugs, err := Bugs(newCourse(t).Root)
	testkit.Must(t, err)
	for _, b := range bugs {
		for n, want := range []string{b.planted.Files()[0], b.planted.Files()[0] + ":", b.planted.Bug} {
			if text, last := b.Hint(n); !strings.Contains(text, want) || last != (n == 2) {
				t.Errorf("%s: hint %d is %q (the last: %v), want %q", b.Mutant, n, text, last, want)
			}
		}
	}
}

// TestSignaturesInStories: a story shows the functions that it names as the sources have them, and the terminal keeps
// their lines.
func TestSignaturesInStories(t *testing.T) {
	c := newCourse(t)
	oneLine := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	sources, shown := map[string]string{}, 0
	for _, e := range c.All {
		_, code, found := strings.Cut(e.Story, "\n    func ")
		if story := reflowed(e.Story); strings.Contains(strings.ToLower(story), "the package ") &&
			(!found || !strings.Contains(story, "package example.com/operator-workshop/"+e.Chapter+"/")) {
			t.Errorf("%s names a package without its path, or without its functions", e.ID)
		}
		if !found {
			continue
		}
		if sources[e.Chapter] == "" {
			for _, folder := range []string{"internal", "stages"} {
				files, err := read(filepath.Join(c.Root, e.Chapter, folder), folder)
				testkit.Must(t, err)
				sources[e.Chapter] += oneLine(source(files))
			}
		}
		for signature := range strings.SplitSeq(code, "\n    func ") {
			shown++
			if !strings.Contains(sources[e.Chapter], "func "+oneLine(signature)+" {") {
				t.Errorf("%s: no file has func %s", e.ID, oneLine(signature))
			}
		}
		if !strings.HasSuffix(reflowed(e.Story), strings.TrimRight("\n    func "+code, "\n")) {
			t.Errorf("%s: the terminal shows\n%s", e.ID, reflowed(e.Story))
		}
	}
	if shown < 10 {
		t.Errorf("the stories show %d functions", shown)
	}
}
