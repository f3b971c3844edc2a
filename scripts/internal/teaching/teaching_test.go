package teaching

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

var root = filepath.Join("..", "..", "..")

// This is the maximum number of slides in a session.
const mostSlides = 50

// A row of a run sheet begins when the row before it ends, and an exercise takes the minutes in its list.
func TestTheRunSheetsAddUp(t *testing.T) {
	exercises, err := exercise.Load(root)
	testkit.Must(t, err)
	rows := 0
	for _, sheet := range sheets(t) {
		clock := 0
		for _, row := range sheet.Rows {
			rows++
			if row.From != clock {
				t.Errorf("%s: the row before ends at minute %d: %s", sheet.Name, clock, row.line)
			}
			clock += row.Minutes
			if row.Exercise == "" || row.Shown {
				continue
			}
			if e, err := exercise.Find(exercises, row.Exercise); err != nil || e.Minutes != row.Minutes {
				t.Errorf("its list gives it %d minutes (%v): %s", e.Minutes, err, row.line)
			}
		}
		last := sheet.Rows[len(sheet.Rows)-1]
		want := map[string]int{"90 minutes": 90, "3 hours": 180}[sheet.Name]
		if last.Minutes != 0 || want != 0 && last.From != want {
			t.Errorf("%s has no end, or ends after %d minutes", sheet.Name, last.From)
		}
	}
	if rows < 50 {
		t.Errorf("%d rows were found", rows)
	}
}

func sheets(t *testing.T) []Sheet {
	t.Helper()
	all, err := Sheets(root)
	if err != nil || len(all) != 9 {
		t.Fatalf("%d sheets: %v", len(all), err)
	}
	return all
}

// The slides are in the order of each sheet. A row of an exercise has its task before its solution; a row of an
// exercise that is only shown has the solution alone.
func TestSlidesFollowTheRunSheets(t *testing.T) {
	slides := readSlides(t)
	for _, sheet := range sheets(t) {
		last, count := 0, 0
		for _, row := range sheet.Rows {
			task, solved := row.Exercise == "" || row.Shown, row.Exercise == ""
			for _, n := range row.Slides {
				if n <= last || n > len(slides) {
					t.Errorf("%s: slide %d comes after %d, and there are %d: %s", sheet.Name, n, last, len(slides), row.line)
					continue
				}
				last, count = n, count+1
				s := slides[n-1]
				switch {
				case s.Exercise == "":
				case s.Exercise != row.Exercise:
					t.Errorf("%s: slide %d is of %s: %s", sheet.Name, n, s.Exercise, row.line)
				case s.Task:
					task = true
				case !task:
					t.Errorf("%s: slide %d gives %s away before its task: %s", sheet.Name, n, s.Exercise, row.line)
				default:
					solved = true
				}
			}
			if !task || !solved {
				t.Errorf("%s: the task and the solution of %s are slides %s: %s", sheet.Name, row.Exercise,
					about(slides, row.Exercise), row.line)
			}
		}
		if count > mostSlides {
			t.Errorf("%s has %d slides, a room bears %d", sheet.Name, count, mostSlides)
		}
	}
}

// about returns the slides of an exercise.
func about(slides []slide, id string) string {
	var some []string
	for _, s := range slides {
		if s.Exercise == id {
			some = append(some, fmt.Sprint(s.Number))
		}
	}
	return strings.Join(some, ", ")
}

// TestEachSlideFits of the window measures the slides in a browser.
func TestEachSlideHasNotes(t *testing.T) {
	slides := readSlides(t)
	exercises, err := exercise.Load(root)
	testkit.Must(t, err)
	text := testkit.Read(t, filepath.Join(root, SlidesFile))
	for _, s := range slides {
		if !s.Noted {
			t.Errorf("slide %d, %q, has no notes for who speaks", s.Number, s.Title)
		}
		if !s.Task {
			continue
		}
		e, err := exercise.Find(exercises, s.Exercise)
		if want := fmt.Sprintf("Task %s: %s (%d minutes)", e.ID, e.Title, e.Minutes); err != nil || s.Title != want {
			t.Errorf("slide %d is titled %q, not %q (%v)", s.Number, s.Title, want, err)
		}
		if want := "- **File:** `" + e.Path() + "`"; !strings.Contains(text, want) {
			t.Errorf("slide %d does not name the file: %s", s.Number, want)
		}
		if len(s.Blocks) == 0 || s.Blocks[0].Text != "make exercise EX="+s.Exercise+"\n" {
			t.Errorf("slide %d has no command that begins %s", s.Number, s.Exercise)
		}
	}
}

// wrappedFrom is the skip reason of a block that has the lines of a file with additional line breaks.
var wrappedFrom = regexp.MustCompile(`^wrapped from (\S+)$`)

// Code with lines that are too long for a slide has other line breaks than its file, and no other difference.
func TestWrappedCodeIsThatOfItsFile(t *testing.T) {
	slides := readSlides(t)
	compared := 0
	for _, s := range slides {
		for _, b := range s.Blocks {
			from := wrappedFrom.FindStringSubmatch(b.Skip)
			if from == nil {
				continue
			}
			compared++
			text, err := os.ReadFile(filepath.Join(root, from[1]))
			if err != nil {
				t.Errorf("slide %d: %v", s.Number, err)
				continue
			}
			rest := unspaced(string(text))
			for part := range strings.SplitSeq(b.Text, "\n…\n") {
				_, after, found := strings.Cut(rest, unspaced(part))
				if !found {
					t.Errorf("slide %d, %q: this is not in %s:\n%s", s.Number, s.Title, from[1], part)
				}
				rest = after
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

func unspaced(text string) string { return strings.Join(strings.Fields(text), "") }

// Each chapter has a section about teaching it, and links that lead a reader to it.
func TestEachChapterIsInTheOverviews(t *testing.T) {
	chapters, err := filepath.Glob(filepath.Join(root, "[0-9][0-9]-*", "README.md"))
	if err != nil || len(chapters) < 7 {
		t.Fatal(chapters, err)
	}
	for file, form := range map[string]string{"TEACHING.md": "\n### %.2s: ", "README.md": "\n| [%[1]s](%[1]s/README.md) | "} {
		text := testkit.Read(t, filepath.Join(root, file))
		for _, chapter := range chapters {
			if want := fmt.Sprintf(form, filepath.Base(filepath.Dir(chapter))); !strings.Contains(text, want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
}

var (
	stepLine   = regexp.MustCompile(`(?m)^\s*%%.*$`)
	layoutWord = regexp.MustCompile(`\b(direction|TB|LR)\b`)
)

// Each word of a picture on a slide is in a picture of a page.
func TestPicturesAreThoseOfPages(t *testing.T) {
	paths, err := page.Find(root)
	testkit.Must(t, err)
	ofPages, ofSlides := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		p, err := page.Parse(path)
		testkit.Must(t, err)
		words := ofPages
		if filepath.Base(path) == SlidesFile {
			words = ofSlides
		}
		for _, part := range p.Parts {
			if part.Block != nil && part.Block.Lang == "mermaid" {
				text := strings.ReplaceAll(stepLine.ReplaceAllString(part.Block.Text, ""), "<br", " ")
				text = layoutWord.ReplaceAllString(text, "")
				for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
					words[word] = true
				}
			}
		}
	}
	if len(ofSlides) == 0 {
		t.Error("the slides have no pictures")
	}
	for word := range ofSlides {
		if !ofPages[word] {
			t.Errorf("%q is in no picture of a page", word)
		}
	}
}
