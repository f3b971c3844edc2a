package benchmark

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Print writes tables of plain text.
func (r *Result) Print(w io.Writer) {
	r.printCounts(w)
	r.printMemory(w)
	r.printStatic(w)
	if len(r.Notes) > 0 {
		fmt.Fprintf(w, "\nNotes\n")
		for _, note := range r.Notes {
			var lines strings.Builder
			outcome.Wrap(&lines, "    ", note)
			fmt.Fprint(w, "  - ", strings.TrimLeft(lines.String(), " "))
		}
	}
}

// A table aligns its columns when it is written.
type table struct {
	out  io.Writer
	rows [][]string
}

func (t *table) row(cells ...any) {
	var row []string
	for _, c := range cells {
		row = append(row, fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

// write prints the table under a title, when it has rows besides its head. When there is not enough space, it
// shortens the first column.
func (t *table) write(title string) {
	if len(t.rows) < 2 {
		return
	}
	others := 0
	for column := range t.rows[0][1:] {
		widest := 0
		for _, row := range t.rows {
			widest = max(widest, utf8.RuneCountInString(row[column+1]))
		}
		others += 2 + widest
	}
	fmt.Fprintf(t.out, "\n%s\n", title)
	var aligned strings.Builder
	lines := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		row[0] = cut(row[0], max(8, outcome.Columns-2-others))
		fmt.Fprintf(lines, "  %s\n", strings.Join(row, "\t"))
	}
	_ = lines.Flush()
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(t.out, strings.TrimRight(line, " \n"))
	}
}

// cut leaves at most n columns of a text.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// printCounts prints a line for each number that is not 0 for all operators, phase by phase, and a column for each
// operator.
func (r *Result) printCounts(w io.Writer) {
	var phases []string
	objects := 0
	head := []any{""}
	for _, m := range r.Implementations {
		head = append(head, m.Name)
		for _, c := range m.Counts {
			if objects = c.Objects; !slices.Contains(phases, c.Phase) {
				phases = append(phases, c.Phase)
			}
		}
	}
	t := &table{out: w}
	t.row(head...)
	for _, phase := range phases {
		numbers := make([]map[string]int, len(r.Implementations)) // nil without the phase
		kinds := map[string]int{}
		for n, m := range r.Implementations {
			for _, c := range m.Counts {
				if c.Phase == phase {
					numbers[n] = c.numbers()
					maps.Copy(kinds, numbers[n])
				}
			}
		}
		blank := slices.Repeat([]any{""}, len(numbers))
		t.row(append([]any{strings.ToUpper(phase)}, blank...)...)
		if len(kinds) == 0 {
			t.row(append([]any{"  nothing"}, blank...)...)
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			cells := []any{"  " + kind}
			for _, of := range numbers {
				if of == nil {
					cells = append(cells, "-")
				} else {
					cells = append(cells, of[kind])
				}
			}
			t.row(cells...)
		}
	}
	t.write(fmt.Sprintf("Requests for %d MyWebs", objects))
}

// numbers are the numbers that are not 0, without the API group of MyWebs.
func (c Count) numbers() map[string]int {
	all := map[string]int{"writes that changed nothing": c.NoOps, "conflicts": c.Conflicts}
	for kind, n := range c.Requests {
		all[strings.ReplaceAll(kind, suite.MyWebs.GroupResource().String(), suite.MyWebs.Resource)] = n
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n == 0 })
	return all
}

func (r *Result) printMemory(w io.Writer) {
	t := &table{out: w}
	t.row("", "MYWEBS", "RSS MiB")
	for _, m := range r.Implementations {
		for _, x := range m.Memory {
			t.row(m.Name, x.MyWebs, x.RSS>>20)
		}
	}
	t.write("Memory after a restart, in steady state")
}

func (r *Result) printStatic(w io.Writer) {
	t := &table{out: w}
	t.row("", "BINARY MiB", "LINES WRITTEN", "PERMISSIONS")
	for _, m := range r.Implementations {
		s := m.Static
		if s.BinaryBytes == 0 {
			continue
		}
		lines := "-"
		if s.Files > 0 {
			lines = fmt.Sprintf("%d in %d files", s.Written, s.Files)
		}
		t.row(m.Name, fmt.Sprintf("%.1f", float64(s.BinaryBytes)/(1<<20)), lines, s.Permissions)
	}
	t.write("The programs")
}
