package teaching

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/tools/present"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
)

var root = filepath.Join("..", "..", "..")

// checkout makes a copy of the slides; a text of theirs may be replaced.
func checkout(t *testing.T, file, old, now string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "scripts" {
			link(t, filepath.Join(root, name), filepath.Join(dir, name))
		}
	}
	for _, path := range []string{slidesDir + "/" + Slides, slidesDir + "/style.html"} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if path == file {
			if !strings.Contains(text, old) {
				t.Fatalf("%s does not have %q", path, old)
			}
			text = strings.Replace(text, old, now, 1)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, slidesDir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, picture := range pictures {
		link(t, picture, filepath.Join(dir, slidesDir, filepath.Base(picture)))
	}
	return dir
}

func link(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.Symlink(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A row of a run sheet begins where the one before ends, and an exercise takes the minutes of its list.
func TestTheRunSheetsAddUp(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "TEACHING.md"))
	if err != nil {
		t.Fatal(err)
	}
	exercises, err := exercise.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d):(\d\d) \| (\d*)\s*\| (?:\*\*([\d.]+)\*\*)?.*$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 50 {
		t.Fatalf("%d rows were found", len(rows))
	}
	clock := 0
	for _, row := range rows {
		hours, _ := strconv.Atoi(row[1])
		from, _ := strconv.Atoi(row[2])
		minutes, _ := strconv.Atoi(row[3])
		if from += 60 * hours; from != clock {
			t.Errorf("the row before ends at minute %d: %s", clock, row[0])
		}
		if clock = from + minutes; minutes == 0 { // the end of a session
			clock = 0
		}
		if id := row[4]; id != "" {
			e, err := exercise.Find(exercises, id)
			if err != nil || e.Minutes != minutes {
				t.Errorf("its list gives it %d minutes (%v): %s", e.Minutes, err, row[0])
			}
		}
	}
}

// Who adds a chapter says how it is taught, and where a reader finds it.
func TestEachChapterIsInTheOverviews(t *testing.T) {
	chapters, err := filepath.Glob(filepath.Join(root, "[0-9][0-9]-*", "README.md"))
	if err != nil || len(chapters) < 7 {
		t.Fatal(chapters, err)
	}
	for file, form := range map[string]string{"TEACHING.md": "\n### %.2s: ", "README.md": "\n| [%[1]s](%[1]s/README.md) | "} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, chapter := range chapters {
			if want := fmt.Sprintf(form, filepath.Base(filepath.Dir(chapter))); !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
}

func TestSlidesThatDoNotFit(t *testing.T) {
	for name, test := range map[string]struct{ code, want string }{
		"a long line":          {strings.Repeat("x", slideColumns+1), "a line of 121 columns"},
		"tabs count as four":   {"\t" + strings.Repeat("x", slideColumns-3), "a line of 121 columns"},
		"too many lines":       {strings.Repeat("x\n", slideLines+1), "has 23 lines of code"},
		"as much as there may": {strings.Repeat(strings.Repeat("é", slideColumns)+"\n", slideLines), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, element := range []present.Elem{
				present.Code{Raw: []byte(test.code)},
				present.HTML{HTML: "<pre><code>" + template.HTML(strings.TrimRight(test.code, "\n")) + "</code></pre>"}} {
				err := fits(present.Section{Elem: []present.Elem{element}})
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%T: got %v, want %q", element, err, test.want)
				}
			}
		})
	}
}

func TestSlidesThatCannotBeShown(t *testing.T) {
	program := filepath.Join(t.TempDir(), "present")
	for name, test := range map[string]struct{ old, now, says, want string }{
		"a file that is gone": {"stages/3-own/main.go", "stages/3-owns/main.go", "", "3-owns/main.go: no such file"},
		"a line that is gone": {"/^func .* createChild/", "/^func createChildren/", "",
			"no match for ^func createChildren"},
		"too many":              {"## See it", strings.Repeat("## One more\n\nx\n\n", 10) + "## See it", "", "at most 40"},
		"all addresses":         {"## See it", "## See it", "visit http://0.0.0.0:3999", "not served on this machine alone"},
		"another name":          {"## See it", "## See it", "visit http://host:3999", "not served on this machine alone"},
		"a program that ends":   {"## See it", "## See it", "", "present ended"},
		"a picture that is not": {".code loop.txt", ".code loops.txt", "", "loops.txt: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			script := "#!/bin/sh\n"
			if test.says != "" {
				script += "echo '" + test.says + "' >&2\nexec sleep 60\n"
			}
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := CheckSlides(t.Context(), program, checkout(t, slidesDir+"/"+Slides, test.old, test.now))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// The pictures of slides are text; each word of them is in a picture of a page.
func TestPicturesAreThoseOfPages(t *testing.T) {
	notAWord := func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }
	paths, err := page.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	mermaid := map[string]bool{}
	for _, path := range paths {
		p, err := page.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.Parts {
			if part.Block != nil && part.Block.Lang == "mermaid" {
				for _, word := range strings.FieldsFunc(strings.ReplaceAll(part.Block.Text, "<br", " "), notAWord) {
					mermaid[word] = true
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, slidesDir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.FieldsFunc(string(data), notAWord) {
			if !mermaid[word] {
				t.Errorf("%s: %q is in no picture of a page", filepath.Base(file), word)
			}
		}
	}
}
