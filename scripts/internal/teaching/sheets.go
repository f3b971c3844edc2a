// Package teaching reads the run sheets of the workshop.
package teaching

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	// SheetsFile is the page with the run sheets, as tables.
	SheetsFile = "TEACHING.md"
	// SlidesFile has the slides. It is a page: its blocks are compared, included or skipped like those of other pages.
	SlidesFile = "SLIDES.md"
)

// A Sheet is the plan of one session.
type Sheet struct {
	Name string `json:"name"`
	Rows []Row  `json:"rows"`
}

// A Row is one row of a sheet.
type Row struct {
	// From and Minutes are in minutes; the row for the end of a session has no Minutes.
	From    int `json:"from"`
	Minutes int `json:"minutes"`
	// These fields are the cells about the activity, the person who types, the check at the end, and the remedy for a
	// delay, as a reader sees them.
	What  string `json:"what"`
	Types string `json:"types"`
	Then  string `json:"then"`
	Late  string `json:"late"`
	// Slides has the numbers of the row's slides.
	Slides []int `json:"slides"`
	// Exercise is the exercise that all attendees write or see in this row. Shown means that they only see it.
	Exercise string `json:"exercise"`
	Shown    bool   `json:"shown"`
	line     string
}

var (
	sheetRow   = regexp.MustCompile(`^\| (\d):(\d\d) \|`)
	sheetPart  = regexp.MustCompile(`^\| \| \| \*\*(.*)\*\* \|`)
	rowSlides  = regexp.MustCompile(` \(slides? ([\d–, ]+)\)`)
	rowTask    = regexp.MustCompile(`^(shown: )?\*\*([\d.]+)\*\*`)
	sheetLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sheetMarks = strings.NewReplacer("**", "", "`", "")
)

// Sheets reads the run sheets of a checkout.
func Sheets(root string) (all []Sheet, err error) {
	text, err := os.ReadFile(filepath.Join(root, SheetsFile))
	if err != nil {
		return nil, err
	}
	_, sheets, _ := strings.Cut(string(text), "\n## Run sheets\n")
	sheets, _, _ = strings.Cut(sheets, "\n## ")
	name := ""
	for line := range strings.Lines(sheets) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			name = heading
			all = append(all, Sheet{Name: name})
		} else if part := sheetPart.FindStringSubmatch(line); part != nil {
			if len(all[len(all)-1].Rows) == 0 { // the sheet has sessions, and no rows before them
				all = all[:len(all)-1]
			}
			all = append(all, Sheet{Name: name + ", " + part[1]})
		} else if sheetRow.MatchString(line) {
			row, err := newRow(line)
			if err != nil || len(all) == 0 {
				return nil, fmt.Errorf("%s: a row that is not as the others: %s", SheetsFile, line)
			}
			all[len(all)-1].Rows = append(all[len(all)-1].Rows, row)
		}
	}
	return all, nil
}

func newRow(line string) (r Row, err error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) < 6 {
		return r, fmt.Errorf("it has %d cells", len(cells))
	}
	for n, cell := range cells {
		cells[n] = strings.TrimSpace(cell)
	}
	hours, minutes, _ := strings.Cut(cells[0], ":")
	h, err := strconv.Atoi(hours)
	if err != nil {
		return r, err
	}
	m, err := strconv.Atoi(minutes)
	if err != nil {
		return r, err
	}
	r = Row{From: 60*h + m, Types: plain(cells[3]), Then: plain(cells[4]), Late: plain(cells[5]), line: line}
	r.Minutes, _ = strconv.Atoi(cells[1])
	if found := rowTask.FindStringSubmatch(cells[2]); found != nil {
		r.Shown, r.Exercise = found[1] != "", found[2]
	}
	if found := rowSlides.FindStringSubmatch(cells[2]); found != nil {
		r.Slides = numbers(found[1])
	}
	r.What = plain(rowSlides.ReplaceAllString(cells[2], ""))
	return r, nil
}

// plain returns a cell without the marks of Markdown.
func plain(cell string) string { return sheetMarks.Replace(sheetLink.ReplaceAllString(cell, "$1")) }

// numbers returns the numbers of a list such as 3, 5–7.
func numbers(list string) (all []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "–")
		first, _ := strconv.Atoi(from)
		last := first
		if isRange {
			last, _ = strconv.Atoi(to)
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all
}
