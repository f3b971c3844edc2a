package teaching

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/translation"
)

const (
	// SlidesFile has the slides. It is a page: its blocks are compared, included or skipped like those of other pages.
	SlidesFile = "SLIDES.md"
	// columns are the characters in a line of code that a slide of 1280 x 720 shows. TestEachSlideFits measures them.
	columns = 81
)

var (
	// ofExercise matches the title of a slide of an exercise.
	ofExercise = regexp.MustCompile(`^(Task|Solution|Picture) (\d\d\.\d+):`)
	slideName  = regexp.MustCompile(`^\[[^\]]*\]\(SLIDES\.md#([^)]+)\)$`)
)

// CheckSlides names the lines of code that are too long for a slide. A picture has another size.
func CheckSlides(p *page.Page) error {
	var wrong []error
	for _, part := range p.Parts {
		if part.Block == nil || part.Block.Lang == "mermaid" {
			continue
		}
		for i, line := range strings.Split(part.Block.Text, "\n") {
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > columns {
				wrong = append(wrong, fmt.Errorf("%s:%d: the code has %d columns, and a slide shows %d: break the line "+
					"(skip=\"wrapped from FILE\")", p.Path, part.Block.Line+i, n, columns))
			}
		}
	}
	return errors.Join(wrong...)
}

// Slides are the titles of the slides, in their order.
type Slides []string

// Deck reads the titles of the slides of a checkout: the headings of SLIDES.md after the title of the page.
func Deck(root string) (titles Slides, err error) {
	p, err := page.Parse(filepath.Join(root, SlidesFile))
	if err != nil {
		return nil, err
	}
	for _, part := range p.Parts[1:] {
		if part.Heading {
			titles = append(titles, part.Prose)
		}
	}
	return titles, nil
}

// named returns the numbers of a list of slides: [name](SLIDES.md#anchor), or a first and a last one with "to" between.
func (titles Slides) named(list string) (all []int, err error) {
	for part := range strings.SplitSeq(list, ", ") {
		from, to, isRange := strings.Cut(part, " to ")
		if !isRange {
			to = from
		}
		first, last := titles.number(from), titles.number(to)
		if first == 0 || last < first {
			return nil, fmt.Errorf("%s has no slides %s", SlidesFile, part)
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}

// number returns the number of a slide, counted from 1, or 0.
func (titles Slides) number(link string) int {
	name := slideName.FindStringSubmatch(link)
	seen := map[string]int{}
	for at, title := range titles {
		if name != nil && translation.Anchor(title, seen) == name[1] {
			return at + 1
		}
	}
	return 0
}
