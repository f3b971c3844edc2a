package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hardest is the highest reading grade of a page, in years of school of a native reader (Flesch-Kincaid). Half of the
// readers of these pages are not native.
const hardest = 8.0

// lintGrades prints the reading grade of each page, the hardest one first, and refuses a page above the limit.
func (w workshop) lintGrades(ctx context.Context, out io.Writer, pages []string) error {
	if len(pages) == 0 {
		return nil
	}
	config := filepath.Join(w.root, lintModule, "terms", "readability.ini")
	cmd := w.program(ctx, filepath.Join(w.bin(), vale), append([]string{"--config", config, "--output=line"}, pages...)...)
	report, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("measure the reading grades: %w", err)
	}
	grades := map[string]float64{}
	for line := range strings.Lines(string(report)) { // README.md:1:1:Readability.Grade:6.44
		fields := strings.Split(strings.TrimSpace(line), ":")
		grade, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return fmt.Errorf("measure the reading grades: vale printed %q", line)
		}
		grades[fields[0]] = grade
	}
	var hard []string
	slices.SortFunc(pages, func(a, b string) int { return int(100 * (grades[b] - grades[a])) })
	fmt.Fprintf(out, "reading grades of pages, at most %v:\n", hardest)
	for _, page := range pages {
		fmt.Fprintf(out, "  %4.1f %s\n", grades[page], page)
		if grades[page] > hardest {
			hard = append(hard, page)
		}
	}
	if len(hard) > 0 {
		return fmt.Errorf("%s: long sentences or long words: split sentences until the grade is at most %v",
			strings.Join(hard, ", "), hardest)
	}
	return nil
}
