// Package teaching makes the run sheets of TEACHING.md: who teaches sees what to do at which minute. The minutes of an
// exercise are those of its list; the minutes of a page are an estimate for its words and blocks, and what a machine
// needed to run it.
package teaching

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/exercise"
)

// The files, seen from the checkout.
const (
	File       = "TEACHING.md"
	sheetsFile = "scripts/teaching/sheets.yaml"
)

// What stands around the run sheets in TEACHING.md.
const (
	begin = "<!-- Run sheets: written by `make sync` from " + sheetsFile + ". -->\n"
	end   = "<!-- End of the run sheets. -->\n"
)

// A Sheet is a workshop of one or more sessions.
type Sheet struct {
	Name     string    `json:"name"`
	About    string    `json:"about"`
	Sessions []Session `json:"sessions"`
}

// A Session is what a room does without going home.
type Session struct {
	Title string `json:"title,omitempty"`
	// Minutes are how long it takes. Segments that take more or less are an error.
	Minutes  int       `json:"minutes"`
	Segments []Segment `json:"segments"`
}

// A Segment is one row: exactly one of Talk, Page, Exercise and Show is set.
type Segment struct {
	// Talk is what is said, or a break.
	Talk string `json:"talk,omitempty"`
	// Page is shown by the instructor, all of it or the named sections. Run is the command that plays it; without one
	// its blocks are typed.
	Page     string   `json:"page,omitempty"`
	Sections []string `json:"sections,omitempty"`
	Run      string   `json:"run,omitempty"`
	// Exercise is written by everybody.
	Exercise string `json:"exercise,omitempty"`
	// Show is an exercise whose solution the instructor explains, and everybody takes with `make goto`.
	Show string `json:"show,omitempty"`
	// What is said of a page, or of a solution that is shown.
	What string `json:"what,omitempty"`
	// Slide is the title of the slide to begin with.
	Slide string `json:"slide,omitempty"`
	// Minutes of a talk and of what is shown. An exercise brings its own. A page has an estimate; if they are given, they
	// replace what is estimated, not what is measured.
	Minutes int `json:"minutes,omitempty"`
	// Rest is a talk that takes the minutes that are left, at least Minutes.
	Rest bool `json:"rest,omitempty"`
	// Cut is the place in the order in which a late instructor drops segments; 0: never.
	Cut int `json:"cut,omitempty"`
}

// row is a segment with what the generator found out.
type row struct {
	name, what, who, reached, late string
	minutes, cut                   int
}

// generator has what sheets are made of.
type generator struct {
	root      string
	exercises []exercise.Exercise
	measured  Measured
	slides    []string // their titles
}

// Render returns all run sheets as Markdown.
func Render(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, sheetsFile))
	if err != nil {
		return "", err
	}
	var list struct {
		Sheets []Sheet `json:"sheets"`
	}
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return "", fmt.Errorf("%s: %w", sheetsFile, err)
	}
	g := generator{root: root}
	if g.exercises, err = exercise.Load(root); err != nil {
		return "", err
	}
	if g.measured, err = ReadMeasured(root); err != nil {
		return "", err
	}
	if g.slides, err = slideTitles(root); err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\nThe machine of these measurements: %s.\n", g.measured.Machine)
	for _, sheet := range list.Sheets {
		fmt.Fprintf(&out, "\n### %s\n\n%s\n\n%s", sheet.Name, strings.TrimSpace(sheet.About), header)
		for _, session := range sheet.Sessions {
			if err := g.session(&out, session); err != nil {
				return "", fmt.Errorf("%s: %s %s: %w", sheetsFile, sheet.Name, session.Title, err)
			}
		}
	}
	return out.String() + "\n", nil
}

const header = "| from | min | what | who types | then | late? |\n|---|---|---|---|---|---|\n"

// session writes the rows of a session. The last one has its cut lines.
func (g generator) session(out *strings.Builder, s Session) error {
	if s.Title != "" {
		fmt.Fprintf(out, "| | | **%s** | | | |\n", s.Title)
	}
	rows, err := g.rows(s)
	if err != nil {
		return err
	}
	clock := 0
	for _, r := range rows {
		from := clock
		clock += r.minutes
		if r.reached != "" {
			r.reached = fmt.Sprintf("by %s everyone has %s", hours(clock), r.reached)
		}
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s |\n", hours(from), r.minutes, r.what, r.who, r.reached, r.late)
	}
	cuts := slices.DeleteFunc(rows, func(r row) bool { return r.cut == 0 })
	slices.SortStableFunc(cuts, func(a, b row) int { return cmp.Compare(a.cut, b.cut) })
	var texts []string
	for _, r := range cuts {
		texts = append(texts, fmt.Sprintf("%s (%d minutes)", r.name, r.minutes))
	}
	fmt.Fprintf(out, "| %s | | End. The room is late? Drop the first of these that is still ahead: %s | | | |\n",
		hours(clock), strings.Join(texts, "; "))
	return nil
}

// rows are the segments of a session, which together take its minutes.
func (g generator) rows(s Session) (rows []row, err error) {
	left, rest := s.Minutes, -1
	for i, segment := range s.Segments {
		r, err := g.row(segment)
		if err != nil {
			return nil, err
		}
		if at := slices.Index(g.slides, segment.Slide); at >= 0 {
			r.what += fmt.Sprintf(" (from slide %d)", at+1)
		} else if segment.Slide != "" {
			return nil, fmt.Errorf("no slide has the title %q", segment.Slide)
		}
		if segment.Rest {
			rest = i
		}
		if next := nextExercise(s.Segments[i+1:]); next != "" && segment.Exercise != "" {
			r.late = fmt.Sprintf("`make goto EX=%s`", next)
		}
		left -= r.minutes
		rows = append(rows, r)
	}
	if left > 0 && rest >= 0 {
		rows[rest].minutes, left = rows[rest].minutes+left, 0
	}
	if left != 0 {
		return nil, fmt.Errorf("the segments take %d minutes, the session has %d", s.Minutes-left, s.Minutes)
	}
	return rows, nil
}

// nextExercise is the first one of some segments, written or shown.
func nextExercise(segments []Segment) string {
	for _, s := range segments {
		if id := s.Exercise + s.Show; id != "" {
			return id
		}
	}
	return ""
}

func (g generator) row(s Segment) (row, error) {
	set := 0
	for _, text := range []string{s.Talk, s.Page, s.Exercise, s.Show} {
		if text != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return row{}, fmt.Errorf("a segment is one of talk, page, exercise and show: %+v", s)
	case (s.Talk != "" || s.Show != "") && s.Minutes == 0 || s.Exercise != "" && s.Minutes > 0:
		return row{}, fmt.Errorf("a talk and what is shown have minutes, an exercise brings its own: %+v", s)
	case s.Page != "":
		return g.page(s)
	case s.Talk != "":
		return row{name: s.Talk, what: s.Talk, who: "–", minutes: s.Minutes, cut: s.Cut}, nil
	}
	e, err := exercise.Find(g.exercises, s.Exercise+s.Show)
	if err != nil {
		return row{}, err
	}
	r := row{name: e.ID, what: fmt.Sprintf("**%s** %s: `make exercise EX=%s`", e.ID, e.Title, e.ID), who: "everyone",
		reached: reached(e), late: "`make solution`", minutes: e.Minutes, cut: s.Cut}
	next := g.next(e)
	if next != "" {
		r.late = fmt.Sprintf("`make goto EX=%s`", next)
	}
	if s.Show != "" {
		if next == "" {
			return row{}, fmt.Errorf("%s is the last of its chapter: no `make goto` takes its solution", e.ID)
		}
		r.what = fmt.Sprintf("shown: **%s** %s. %s", e.ID, e.Title, s.What)
		if chapter, number, dir := stageOf(e); dir != "" && number != "1" { // no check demands the first
			r.what += fmt.Sprintf(": `make stages CH=%s RUN=%s`", chapter, dir)
		}
		r.name, r.who, r.late, r.minutes = "what is shown of "+e.ID, "everyone: `make goto EX="+next+"`", "", s.Minutes
	}
	return r, nil
}

// next is the exercise after this one in its chapter.
func (g generator) next(e exercise.Exercise) string {
	at := slices.IndexFunc(g.exercises, func(o exercise.Exercise) bool { return o.ID == e.ID }) + 1
	if at < len(g.exercises) && g.exercises[at].Chapter == e.Chapter && !g.exercises[at].Fresh {
		return g.exercises[at].ID
	}
	return ""
}

// reached is what a reader has who solved an exercise.
func reached(e exercise.Exercise) string {
	if chapter, number, dir := stageOf(e); dir != "" {
		return "stage " + number + " of " + chapter
	}
	return e.ID
}

// stageOf returns the chapter, the number and the folder name of the stage that solves an exercise; no folder when it
// has another solution.
func stageOf(e exercise.Exercise) (chapter, number, dir string) {
	chapter, number, _ = strings.Cut(e.ID, ".")
	if solution, ok := strings.CutPrefix(e.Solution, "stages/"); ok && strings.HasPrefix(solution, number+"-") {
		dir, _, _ = strings.Cut(solution, "/")
	}
	return chapter, number, dir
}

func hours(minutes int) string { return fmt.Sprintf("%d:%02d", minutes/60, minutes%60) }

// merge returns TEACHING.md with its run sheets made anew.
func merge(root string) (old, now []byte, err error) {
	if old, err = os.ReadFile(filepath.Join(root, File)); err != nil {
		return nil, nil, err
	}
	sheets, err := Render(root)
	if err != nil {
		return nil, nil, err
	}
	before, rest, ok := bytes.Cut(old, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, nil, fmt.Errorf("%s lost the line %q or %q", File, begin, end)
	}
	return old, slices.Concat(before, []byte(begin), []byte(sheets), []byte(end), after), nil
}

// Sync writes the run sheets into TEACHING.md.
func Sync(root string) error {
	_, now, err := merge(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, File), now, 0o644)
}

// Check returns an error when the run sheets in TEACHING.md are not what they are made of.
func Check(root string) error {
	old, now, err := merge(root)
	if err == nil && !bytes.Equal(old, now) {
		err = errors.New("the run sheets in TEACHING.md are stale: `make sync` writes them")
	}
	return err
}
