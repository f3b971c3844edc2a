package teaching

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

var root = filepath.Join("..", "..", "..")

const (
	// mostSlides is the maximum number of slides in a session.
	mostSlides = 50
	// aroundExercise are the minutes for the task slide, the goto of those who are late, and the solution slide.
	aroundExercise = 3
	// mostWords is the maximum number of words on a slide, without its code and its notes.
	mostWords = 60
)

// A row of a run sheet begins when the row before it ends. An exercise takes the minutes in its list, and the minutes
// around it.
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
			if e, err := exercise.Find(exercises, row.Exercise); err != nil || e.Minutes+aroundExercise != row.Minutes {
				t.Errorf("its list gives it %d minutes, and %d are around it (%v): %s", e.Minutes, aroundExercise, err, row.line)
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

func english(cell string) string { return cell }

func sheets(t *testing.T) []Sheet {
	t.Helper()
	all, err := Sheets(root, english)
	if err != nil || len(all) != 9 {
		t.Fatalf("%d sheets: %v", len(all), err)
	}
	return all
}

// The slides are in the order of each sheet. A row of an exercise has its task before its solution, also when the room
// does not write the exercise, because a solution without its problem explains nothing.
func TestSlidesFollowTheRunSheets(t *testing.T) {
	slides := readSlides(t)
	for _, sheet := range sheets(t) {
		last, count := 0, 0
		for _, row := range sheet.Rows {
			var tasks []bool
			for _, n := range row.Slides {
				if n <= last {
					t.Errorf("%s: slide %d comes after %d: %s", sheet.Name, n, last, row.line)
				}
				last, count = n, count+1
				s := slides[n-1]
				if s.Picture {
					continue
				}
				if s.Exercise == row.Exercise && s.Exercise != "" {
					tasks = append(tasks, s.Task)
				} else if s.Exercise != "" {
					t.Errorf("%s: slide %d is of %s: %s", sheet.Name, n, s.Exercise, row.line)
				}
			}
			if row.Exercise != "" && !slices.Equal(tasks, []bool{true, false}) {
				t.Errorf("%s: the slides of %s are not its task and its solution: %s", sheet.Name, row.Exercise, row.line)
			}
		}
		if count > mostSlides {
			t.Errorf("%s has %d slides, a room bears %d", sheet.Name, count, mostSlides)
		}
	}
}

// A room learns how an exercise goes before its first exercise, in a row that no late instructor drops.
func TestHowAnExerciseGoesIsNotDropped(t *testing.T) {
	slides := readSlides(t)
	how := 1 + slices.IndexFunc(slides, func(s slide) bool { return s.Title == "How an exercise goes" })
	for _, sheet := range sheets(t) {
		_, parts, _ := strings.Cut(sheet.Rows[len(sheet.Rows)-1].What, "that has not begun: ")
		for part := range strings.SplitSeq(parts, "; ") {
			name, minutes, _ := strings.Cut(strings.TrimPrefix(part, "the slides of "), " (")
			at := slices.IndexFunc(sheet.Rows, func(r Row) bool {
				return (r.Exercise == name || strings.HasPrefix(r.What, name)) && fmt.Sprintf("%d minutes)", r.Minutes) == minutes
			})
			if at < 0 || slices.Contains(sheet.Rows[at].Slides, how) {
				t.Errorf("%s: no row is %q, or it has slide %d", sheet.Name, part, how)
			}
		}
		if !slices.Contains(sheet.Rows[0].Slides, 1) {
			continue // a later session
		}
		first := slices.IndexFunc(sheet.Rows, func(r Row) bool { return r.Exercise != "" })
		if !slices.Contains(sheet.Rows[first].Slides, how) {
			t.Errorf("%s: slide %d is not in the row of the first exercise: %s", sheet.Name, how, sheet.Rows[first].line)
		}
	}
}

// A slide has its number from its place in SLIDES.md. A row names it, so a new slide moves no row.
func TestARowNamesItsSlides(t *testing.T) {
	titles := Slides{"Welcome", "01: a `write`", "Task 04.2: Create (20 minutes)", "Solution 04.2: create", "The end"}
	for cell, want := range map[string][]int{
		"talk (slides [a](SLIDES.md#welcome) to [b](SLIDES.md#01-a-write), [c](SLIDES.md#the-end))": {1, 2, 5},
		"talk (slide [b](SLIDES.md#01-a-write))":                                                    {2},
		"**04.2** Create: `make exercise EX=04.2`":                                                  {3, 4},
		"shown: **04.2** Create (slide [a](SLIDES.md#welcome))":                                     {1, 3, 4},
		"Break": nil,
	} {
		row, err := titles.row("| 0:05 | 5 | "+cell+" | – |  |  |", english)
		if err != nil || !slices.Equal(row.Slides, want) || strings.Contains(row.What, "slide") {
			t.Errorf("%s: %v, %q, %v", cell, row.Slides, row.What, err)
		}
	}
	for _, list := range []string{"[a](SLIDES.md#gone)", "[c](SLIDES.md#the-end) to [a](SLIDES.md#welcome)"} {
		if row, err := titles.row("| 0:05 | 5 | talk (slides "+list+") | – |  |  |", english); err == nil {
			t.Errorf("%s: slides %v", list, row.Slides)
		}
	}
}

// A translator gets each cell once, without what the other languages share: commands alone, links, and numbers.
func TestSentencesOfTheRunSheets(t *testing.T) {
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, SlidesFile), "# The slides\n\n## One\n")
	testkit.Write(t, filepath.Join(dir, SheetsFile), "# T\n\n## Run sheets\n\n### 3 hours\n\n"+
		"| 0:00 | 5 | **04.2** [a page](a.md), `make page CH=01` (slide [1](SLIDES.md#one)) | – | by 0:05 | `make goto EX=04.3` |\n"+
		"| 0:05 | | **04.3** [a page](b.md), `make page CH=02` | – | | |\n")
	all, err := Sentences(dir)
	testkit.Must(t, err)
	var texts []string
	for _, s := range all {
		texts = append(texts, s.Text)
	}
	if want := []string{"by {1}", "**{1}** a page, `make page CH={2}`", "3 hours"}; !slices.Equal(texts, want) {
		t.Errorf("%q, not %q", texts, want)
	}
}

// TestEachSlideFits of the window measures the slides in a browser.
func TestEachSlideHasNotes(t *testing.T) {
	slides := readSlides(t)
	exercises, err := exercise.Load(root)
	testkit.Must(t, err)
	text := testkit.Read(t, filepath.Join(root, SlidesFile))
	const proved = "For an equal status the API server stores nothing and sends no event." // by TestStatementsOfHints of 04
	if !strings.Contains(strings.ReplaceAll(text, "\n> ", " "), proved) {
		t.Errorf("the notes of 04.4 do not state: %s", proved)
	}
	for _, e := range exercise.Stages(exercises, "04-controller-runtime")[1:] { // a page has the run of each but the first
		run := "STAGE DEMANDED BY BEFORE NOW PASSES\n" + e.Solution + " " + e.Lab[0] + " "
		if !strings.Contains(text, run) || strings.Contains(text, "; …\n") {
			t.Errorf("the solution of %s has no run, or a verdict is cut off", e.ID)
		}
	}
	for _, s := range slides {
		if s.Words > mostWords {
			t.Errorf("slide %d, %q, has %d words", s.Number, s.Title, s.Words)
		}
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
	stepLine   = regexp.MustCompile(`(?m)^\s*(%%|classDef |class ).*$`)
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
