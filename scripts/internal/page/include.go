package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkInclude compares a block with the file whose text it shows.
func checkInclude(dir string, b *Block) error {
	path := filepath.Join(dir, b.File)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch {
	case b.Part:
		if !hasExcerpt(strings.Split(string(data), "\n"), strings.Split(strings.TrimRight(b.Text, "\n"), "\n")) {
			return fmt.Errorf("the block is not a run of whole lines of %s", b.File)
		}
	case b.Text != string(data):
		return fmt.Errorf("the block differs from %s:\n%s", b.File,
			Diff(b.File, "page", strings.TrimRight(string(data), "\n")+"\n", b.Text))
	}
	return nil
}

// hasExcerpt reports whether whole contains the runs of lines of an excerpt, in this order. A line "…" separates two
// runs.
func hasExcerpt(whole, excerpt []string) bool {
	var run []string
	for _, line := range append(excerpt, "…") {
		if strings.TrimSpace(line) != "…" {
			run = append(run, line)
			continue
		}
		end := runEnd(whole, run)
		if end < 0 {
			return false
		}
		whole, run = whole[end:], nil
	}
	return true
}

// runEnd returns the index after the first run of lines of whole that equals part, perhaps with less indentation, or
// -1.
func runEnd(whole, part []string) int {
	if len(part) == 0 {
		return 0
	}
	for start := 0; start+len(part) <= len(whole); start++ {
		indent, ok := strings.CutSuffix(whole[start], part[0])
		if !ok || strings.TrimLeft(indent, " \t") != "" {
			continue
		}
		same := true
		for i, line := range part {
			same = same && (whole[start+i] == indent+line || line == "" && whole[start+i] == "")
		}
		if same {
			return start + len(part)
		}
	}
	return -1
}
