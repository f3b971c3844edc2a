package teaching

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/page"
)

// MeasuredFile has how long pages ran, seen from the checkout.
const MeasuredFile = "scripts/teaching/pages.yaml"

// Measured is how long a machine ran the blocks of pages, once everything was compiled.
type Measured struct {
	Machine string         `json:"machine"`
	Seconds map[string]int `json:"seconds"`
}

// ReadMeasured reads what was recorded; where there is nothing yet, it is empty.
func ReadMeasured(root string) (m Measured, err error) {
	data, err := os.ReadFile(filepath.Join(root, MeasuredFile))
	if err != nil && !os.IsNotExist(err) {
		return m, err
	}
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", MeasuredFile, err)
	}
	if m.Seconds == nil {
		m.Seconds = map[string]int{}
	}
	return m, nil
}

// Write records them.
func (m Measured) Write(root string) error {
	data, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	const head = "# How long pages ran, everything compiled. Written by `scripts/workshop pages --record FILE…`.\n"
	return os.WriteFile(filepath.Join(root, MeasuredFile), append([]byte(head), data...), 0o644)
}

// page estimates the minutes of a page, and adds what a machine needed to run all of it.
func (g generator) page(s Segment) (row, error) {
	p, err := page.Parse(filepath.Join(g.root, s.Page))
	if err != nil {
		return row{}, err
	}
	reading, err := readingSeconds(p, s.Sections)
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", s.Page, err)
	}
	if s.Minutes > 0 {
		reading = s.Minutes * 60
	}
	machine, ok := g.measured.Seconds[s.Page]
	if !ok {
		return row{}, fmt.Errorf("%s was never measured: scripts/workshop pages --record %s", s.Page, s.Page)
	}
	run := "type its blocks"
	if s.Run != "" {
		run = "`" + s.Run + "`"
	}
	what := fmt.Sprintf("%s: [page](%s), %s (whole page: %d s of machine)", s.What, s.Page, run, machine)
	return row{name: s.What, what: what, who: "instructor", minutes: (reading + machine + 59) / 60, cut: s.Cut}, nil
}

// An estimate: who explains a page needs a minute for so many words, and so long for a block and what it prints.
const (
	wordsAMinute = 90
	blockSeconds = 40
)

// readingSeconds is the estimate for the named sections of a page, or all of it.
func readingSeconds(p *page.Page, sections []string) (int, error) {
	words, blocks, found, inside := 0, 0, 0, len(sections) == 0
	for _, part := range p.Parts {
		switch {
		case part.Heading && len(sections) > 0:
			inside = slices.Contains(sections, part.Prose)
			if inside {
				found++
			}
		case !inside:
		case part.Block == nil:
			words += len(strings.Fields(part.Prose))
		case part.Block.Lang == "sh" || part.Block.Lang == "go" || part.Block.Lang == "mermaid":
			blocks++
		}
	}
	if found != len(sections) {
		return 0, fmt.Errorf("it does not have all of the sections %q", sections)
	}
	return words*60/wordsAMinute + blocks*blockSeconds, nil
}
