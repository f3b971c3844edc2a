package exercise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// edited is an exercise whose file has a text.
func edited(t *testing.T, text string) (c Course, e Exercise, path string) {
	t.Helper()
	root := t.TempDir()
	e = Exercise{ID: "04.1", Chapter: "04-x", File: "main.go", Starter: "stages/1"}
	c = Course{Workspace: Workspace{Root: root, Work: filepath.Join(root, "work"), Now: time.Now}, All: []Exercise{e}}
	path = filepath.Join(root, e.Path())
	testkit.Write(t, path, text)
	testkit.Write(t, filepath.Join(root, "04-x/stages/1/main.go"), "package main\n")
	return c, e, path
}

func TestATextIsWrittenOverTheReadTextAlone(t *testing.T) {
	c, e, path := edited(t, "one")
	testkit.Must(t, os.Chmod(path, 0o755))
	read, err := c.ReadText(e)
	testkit.Must(t, err)
	wrote, err := c.WriteText(e, "two", read.Version)
	testkit.Must(t, err)
	if info, _ := os.Stat(path); testkit.Read(t, path) != "two" || info.Mode().Perm() != 0o755 {
		t.Errorf("the file is %q, %v", testkit.Read(t, path), info)
	}
	if is, err := c.WriteText(e, "three", read.Version); !errors.Is(err, ErrChanged) || is != wrote {
		t.Errorf("over another text: %+v %v", is, err)
	}
	testkit.Must(t, os.RemoveAll(filepath.Dir(path)))
	if is, err := c.WriteText(e, "three", wrote.Version); !errors.Is(err, ErrChanged) || is != (Text{}) {
		t.Errorf("over no file: %+v %v", is, err)
	}
	_, err = c.WriteText(e, "three", "")
	testkit.Must(t, err)
	if left, _ := os.ReadDir(filepath.Dir(path)); testkit.Read(t, path) != "three" || len(left) != 1 {
		t.Errorf("the file is %q, beside %v", testkit.Read(t, path), left)
	}
}

func TestATextThatCannotBeWrittenIsUnchanged(t *testing.T) {
	c, e, path := edited(t, "one")
	outside := filepath.Join(t.TempDir(), "outside")
	testkit.Write(t, filepath.Join(outside, "main.go"), "one")
	inPlace := func(link, target string) { // of a file or a folder
		testkit.Must(t, os.RemoveAll(link))
		testkit.Must(t, os.Symlink(target, link))
	}
	read, err := c.ReadText(e)
	testkit.Must(t, err)
	for name, test := range map[string]struct {
		prepare func()
		file    string
	}{
		"a link to a file outside":   {func() { inPlace(path, filepath.Join(outside, "main.go")) }, "main.go"},
		"a link to a folder outside": {func() { inPlace(filepath.Dir(path), outside) }, "main.go"},
		"a path out of work/":        {func() {}, "../../outside.go"},
		"a folder":                   {func() { testkit.Must(t, os.Remove(path)); testkit.Must(t, os.Mkdir(path, 0o755)) }, "main.go"},
		"bytes that are no text":     {func() { testkit.Write(t, path, "\xff") }, "main.go"},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Must(t, os.RemoveAll(filepath.Dir(path)))
			testkit.Write(t, path, "one")
			test.prepare()
			e.File = test.file
			for _, version := range []string{"", read.Version} {
				if _, err := c.WriteText(e, "two", version); err == nil || errors.Is(err, ErrChanged) {
					t.Errorf("with version %.3q: %v", version, err)
				}
			}
			if text := testkit.Read(t, filepath.Join(outside, "main.go")); text != "one" {
				t.Errorf("outside is %q", text)
			}
		})
	}
}

func TestThePlacesOfAFailure(t *testing.T) {
	const text = "package main\r\n\r\nfunc main() {\r\n\tundefined()\r\n\tSwapped(child, owner)\r\n}\r\n"
	c, e, path := edited(t, text)
	e.Wrong = []Wrong{{Name: "swapped", Says: "no owner", Source: `Swapped\(`, Hint: "Swap them."}}
	compile := compileError("./main.go:4:2: undefined: undefined\n\tit is not there\n./main.go:6: and the end", "work/04-x", nil)
	failed := Judgement{Own: []Result{{ID: "a", Verdict: "failed", What: "no owner"}}}
	hint := []Place{{Line: 5}}
	for name, test := range map[string]struct {
		report Judgement
		after  func()
		want   []Place
	}{
		"errors of the compiler": {Judgement{Compile: compile}, func() {},
			[]Place{{4, 2, "undefined: undefined\n\tit is not there"}, {6, 0, "and the end"}}},
		"a place that the hint knows": {failed, func() {}, hint},
		"the file has changed since":  {failed, func() { testkit.Write(t, path, text+"// new\r\n") }, nil},
		"it is there twice":           {failed, func() {}, nil},
		"another exercise":            {failed, func() { testkit.Must(t, c.GoOn(Exercise{ID: "04.2", Chapter: "04-y"})) }, nil},
		"a pass":                      {Judgement{Own: []Result{{Verdict: "passed"}}}, func() {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			is := text
			if name == "it is there twice" {
				is = text + text
			}
			testkit.Write(t, path, is)
			s, err := c.State()
			testkit.Must(t, err)
			s.Take(e)
			testkit.Must(t, c.Judged(e, s, c.Digest(e), test.report))
			test.after()
			s, err = c.State()
			testkit.Must(t, err)
			if diff := cmp.Diff(test.want, c.Places(e, s, is)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheFilesBesideAFile(t *testing.T) {
	c, e, path := edited(t, "package main\n\nimport (\n\t\"fmt\"\n\t\"x.test/four/api/v1\"\n)\n\nhalf of it")
	for name, text := range map[string]string{"go.mod": "module x.test/four\n", "api/v1/types.go": "package v1\n",
		"internal/status.go": "package internal\n",
		"stages/2/main.go":   "package main\n\nimport _ \"x.test/four/internal\"\n", "api/v1/zz_generated.go": "generated", "api/v1/types_test.go": "tests"} {
		testkit.Write(t, filepath.Join(c.Root, "04-x", name), text)
	}
	testkit.Write(t, filepath.Join(filepath.Dir(path), "other.go"), "package main\n")
	e.Solution = "stages/2" // its story may need a file before the reader imports it
	files, err := c.Beside(e, testkit.Read(t, path))
	testkit.Must(t, err)
	want := map[string]string{"work/04-x/main.go": testkit.Read(t, path), "work/04-x/other.go": "package main\n", "04-x/api/v1/types.go": "package v1\n",
		"04-x/internal/status.go": "package internal\n"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	if files, err := c.Beside(e, strings.Repeat("{", 9)); err != nil || len(files) != 3 {
		t.Errorf("of a text that is no Go: %v %v", files, err)
	}
}

// TestTheFilesThatAReaderEdits: an exercise gives them, and the reader's other files and what a generator makes are not
// among them. A specification with a mistake does not matter.
func TestTheFilesThatAReaderEdits(t *testing.T) {
	c := newCourse(t)
	for id, want := range map[string][]string{"capstone": {"main.go", "types.go"}, "01.2": {"crd.yaml"},
		"02.1": {"doc.go", "types.go"}, "04.3": {"main.go"}, "04.15": {"main.go", "types.go"}} {
		e, err := Find(c.All, id)
		testkit.Must(t, err)
		testkit.Write(t, filepath.Join(c.Dir(e), "specification.yaml"), "kind: 7\n")
		testkit.Write(t, filepath.Join(c.Dir(e), "other.go"), "package main\n")
		got, err := c.Edited(e)
		testkit.Must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}
