// Package teaching reads the run sheets of the workshop.
package teaching

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"example.com/operator-workshop/scripts/internal/translation"
)

// SheetsFile is the page with the run sheets, as tables.
const SheetsFile = "TEACHING.md"

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
	// Slides has the numbers of the row's slides: those that it names, and those of its exercise.
	Slides []int `json:"slides"`
	// Exercise is the exercise that all attendees write or see in this row. Shown means that they only see it.
	Exercise string `json:"exercise"`
	Shown    bool   `json:"shown"`
	// Solution is the number of its solution slide: the room needs the goto of the row from there on.
	Solution int `json:"solution"`
	line     string
}

var (
	sheetRow   = regexp.MustCompile(`^\| (\d):(\d\d) \|`)
	sheetPart  = regexp.MustCompile(`^\| \| \| \*\*(.*)\*\* \|`)
	rowSlides  = regexp.MustCompile(` \(slides? (\[.*\))\)`)
	rowTask    = regexp.MustCompile(`^(shown: )?\*\*([\d.]+)\*\*`)
	sheetLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sheetMarks = strings.NewReplacer("**", "", "`", "")
)

// Sheets reads the run sheets of a checkout. It shows what say returns for each cell.
func Sheets(root string, say func(cell string) string) (all []Sheet, err error) {
	text, err := os.ReadFile(filepath.Join(root, SheetsFile))
	if err != nil {
		return nil, err
	}
	_, sheets, _ := strings.Cut(string(text), "\n## Run sheets\n")
	sheets, _, _ = strings.Cut(sheets, "\n## ")
	deck, err := Deck(root)
	if err != nil {
		return nil, err
	}
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
			row, err := deck.row(line, say)
			if err != nil || len(all) == 0 {
				return nil, fmt.Errorf("%s: a row that is not as the others (%w): %s", SheetsFile, err, line)
			}
			all[len(all)-1].Rows = append(all[len(all)-1].Rows, row)
		}
	}
	return all, nil
}

var (
	cellCode   = regexp.MustCompile("`[^`]*`")
	cellNumber = regexp.MustCompile(`\d+([.:]\d+)*`)
)

// Sentences returns what other languages have of the run sheets: the names of the sheets, and the cells. {1}, {2} and so
// on stand for the numbers of a cell: a row that gets another time has the same sentence.
func Sentences(root string) (all []translation.Sentence, err error) {
	sheets, err := Sheets(root, func(cell string) string {
		n := 0
		text := cellNumber.ReplaceAllStringFunc(cell, func(string) string {
			n++
			return fmt.Sprintf("{%d}", n)
		})
		one := translation.Sentence{Text: text, From: SheetsFile}
		if strings.ContainsFunc(cellCode.ReplaceAllString(cell, ""), unicode.IsLetter) && !slices.Contains(all, one) {
			all = append(all, one)
		}
		return cell
	})
	for _, sheet := range sheets {
		all = append(all, translation.Sentence{Text: sheet.Name, From: SheetsFile})
	}
	return all, err
}

// row reads a row, and shows what say returns for each cell.
func (titles Slides) row(line string, say func(cell string) string) (r Row, err error) {
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
	shown := func(cell string) string { return sheetMarks.Replace(say(sheetLink.ReplaceAllString(cell, "$1"))) }
	r = Row{From: 60*h + m, Types: shown(cells[3]), Then: shown(cells[4]), Late: shown(cells[5]), line: line}
	r.Minutes, _ = strconv.Atoi(cells[1])
	if found := rowTask.FindStringSubmatch(cells[2]); found != nil {
		r.Shown, r.Exercise = found[1] != "", found[2]
	}
	if found := rowSlides.FindStringSubmatch(cells[2]); found != nil {
		if r.Slides, err = titles.named(found[1]); err != nil {
			return r, err
		}
	}
	for at, title := range titles {
		if of := ofExercise.FindStringSubmatch(title); of != nil && of[2] == r.Exercise {
			r.Slides = append(r.Slides, at+1)
			if of[1] == "Solution" {
				r.Solution = at + 1
			}
		}
	}
	r.What = shown(rowSlides.ReplaceAllString(cells[2], ""))
	return r, nil
}
