package benchmark

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
)

// width is the maximum number of columns that Print uses.
const width = 100

// Print writes tables of plain text.
func (r *Result) Print(w io.Writer) {
	r.printCounts(w)
	r.printTimes(w)
	r.printComparisons(w)
	r.printMemory(w)
	r.printStatic(w)
	if len(r.Notes) > 0 {
		fmt.Fprintf(w, "\nNotes\n")
		for _, note := range r.Notes {
			wrapped := wordwrap.WrapString(note, width-4)
			fmt.Fprintf(w, "  - %s\n", strings.ReplaceAll(wrapped, "\n", "\n    "))
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
		row[0] = cut(row[0], max(8, width-2-others))
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
	kinds, objects := map[string][]string{}, 0
	for _, m := range r.Implementations {
		for _, c := range m.Counts {
			if objects = c.Objects; !slices.Contains(phases, c.Phase) {
				phases = append(phases, c.Phase)
			}
			kinds[c.Phase] = slices.AppendSeq(kinds[c.Phase], maps.Keys(c.Requests))
		}
	}
	t := &table{out: w}
	t.row(r.head("")...)
	for _, phase := range phases {
		t.row(r.head(strings.ToUpper(phase), "")...)
		before := len(t.rows)
		line := func(title string, number func(Count) int) {
			if row := r.counts(title, phase, number); row != nil {
				t.row(row...)
			}
		}
		slices.Sort(kinds[phase])
		for _, kind := range slices.Compact(kinds[phase]) {
			line("  "+short(kind), func(c Count) int { return c.Requests[kind] })
		}
		line("  writes that changed nothing", func(c Count) int { return c.NoOps })
		line("  conflicts", func(c Count) int { return c.Conflicts })
		if len(t.rows) == before {
			t.row(r.head("  nothing", "")...)
		}
	}
	t.write(fmt.Sprintf("Requests for %d MyWebs", objects))
}

// head is a line with the names of all operators, or with the same cell for each.
func (r *Result) head(first string, cell ...any) []any {
	cells := []any{first}
	for _, m := range r.Implementations {
		if len(cell) > 0 {
			cells = append(cells, cell[0])
		} else {
			cells = append(cells, m.Name)
		}
	}
	return cells
}

// counts is a line with a number for each operator; nil when all are 0.
func (r *Result) counts(title, phase string, number func(Count) int) []any {
	cells, some := []any{title}, false
	for _, m := range r.Implementations {
		cell := "-"
		for _, c := range m.Counts {
			if n := number(c); c.Phase == phase {
				cell, some = fmt.Sprint(n), some || n > 0
			}
		}
		cells = append(cells, cell)
	}
	if !some {
		return nil
	}
	return cells
}

// short leaves the API group of MyWebs out.
func short(kind string) string {
	return strings.ReplaceAll(kind, "mywebs.operator.k8s-summit.org", "mywebs")
}

func (r *Result) printTimes(w io.Writer) {
	t, processor := &table{out: w}, &table{out: w}
	t.row("", "CONVERGE", "EFFICIENCY", "P50", "P99")
	processor.row("", "OPERATOR", "API SERVER", "API SERVER, BARE LOOP")
	for _, m := range r.Implementations {
		converge, efficiency, p50, p99 := "-", "-", "-", "-"
		if c := m.Convergence; c != nil {
			converge, efficiency = fmt.Sprintf("%d in %s", c.Objects, seconds(c.Took)), c.Efficiency.String()
			processor.row(m.Name, c.Operator.Round(10*time.Microsecond), c.APIServer.Round(10*time.Microsecond),
				c.Bare.Round(10*time.Microsecond))
		}
		if m.Latency != nil {
			p50 = seconds(m.Latency.P50)
			if m.Latency.P99 > 0 {
				p99 = seconds(m.Latency.P99)
			}
		}
		if m.Convergence != nil || m.Latency != nil {
			t.row(m.Name, converge, efficiency, p50, p99)
		}
	}
	t.write("Times (of this machine in this hour: only ratios mean something)")
	processor.write("Processor time for one MyWeb, while they converge")
}

// printComparisons prints a table for each two operators.
func (r *Result) printComparisons(w io.Writer) {
	for _, c := range r.Comparisons {
		ratio := c.Ratio.String()
		if c.TooNoisy {
			ratio = "too noisy"
		}
		t := &table{out: w}
		t.row("", "PAIRS", "RATIO", "CONTROL")
		t.row(c.Metric, c.Pairs, ratio, c.Control)
		t.write(fmt.Sprintf("Times of %s / %s (95 %% intervals; control: the first / itself)", c.A, c.B))
	}
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

// String is the estimate with its interval, if there is one.
func (i Interval) String() string {
	if i.High == 0 {
		return fmt.Sprintf("%.2f", i.Value)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", i.Value, i.Low, i.High)
}

// seconds rounds a duration for a reader.
func seconds(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
