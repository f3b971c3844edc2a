package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// width is the longest line that Print writes, unless one word alone is longer: a path or a command
// is never cut.
const width = 100

var colours = map[Status]string{OK: "32", Warning: "33", Failure: "31", NotApplicable: "2"}

// Print writes one line for each finding that asks for nothing, what, why and fix for each that
// does, and a count at the end. With color, the status words carry ANSI colours.
func Print(w io.Writer, findings []Finding, color bool) error {
	longest := 0
	for _, finding := range findings {
		longest = max(longest, utf8.RuneCountInString(finding.Check))
	}
	var out strings.Builder
	for _, finding := range findings {
		status := fmt.Sprintf("%-4s", finding.Status)
		if color {
			status = "\x1b[" + colours[finding.Status] + "m" + status + "\x1b[0m"
		}
		if finding.Status != Warning && finding.Status != Failure {
			fmt.Fprintf(&out, "%s  %s", status, finding.Check)
			blanks := longest - utf8.RuneCountInString(finding.Check)
			out.WriteString(strings.Repeat(" ", blanks))
			wrap(&out, "  ", longest+8, finding.What)
			continue
		}
		fmt.Fprintf(&out, "%s  %s\n", status, finding.Check)
		wrap(&out, "      what  ", 12, finding.What)
		wrap(&out, "      why   ", 12, finding.Why)
		wrap(&out, "      fix   ", 12, finding.Fix)
	}
	out.WriteString(summary(findings) + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// Brief returns one line about a machine and its findings, for who looks at many machines: whether it will do, what it
// is, and the checks that want something, by ID.
func Brief(ctx context.Context, m Machine, findings []Finding) string {
	found, docker := map[Status][]string{}, "no"
	for _, finding := range findings {
		found[finding.Status] = append(found[finding.Status], finding.ID())
		if finding.Check == "Docker" && finding.Status == OK {
			docker = "yes"
		}
	}
	memory, free, goes := "? GiB", "? GB free", "go:none"
	if bytes, _, err := m.Memory(ctx); err == nil {
		memory = fmt.Sprintf("%.0f GiB", float64(bytes)/gib)
	}
	if bytes, err := m.Disk(existing(m.Repository)); err == nil {
		free = fmt.Sprintf("%d GB free", bytes/1e9)
	}
	if answer, err := m.Run(ctx, "go", "version"); err == nil && goVersion(answer) != "" {
		goes = goVersion(answer)
	}
	line := fmt.Sprintf("%s %s/%s %s %d cores %s %s docker:%s", Worst(findings), m.OS, m.Arch, goes, m.Cores, memory, free,
		docker)
	for _, status := range []Status{Failure, Warning} {
		if ids := found[status]; len(ids) > 0 {
			line += fmt.Sprintf(" %s:%s", status, strings.Join(ids, ","))
		}
	}
	return line
}

// wrap writes text behind first, which fills the line up to the column indent; further lines start
// at that column. Line breaks of the text are kept.
func wrap(out *strings.Builder, first string, indent int, text string) {
	out.WriteString(first)
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			out.WriteString(strings.Repeat(" ", indent))
		}
		column := indent
		for j, word := range strings.Fields(line) {
			length := utf8.RuneCountInString(word)
			switch {
			case j == 0:
			case column+1+length > width:
				out.WriteString("\n" + strings.Repeat(" ", indent))
				column = indent
			default:
				out.WriteString(" ")
				column++
			}
			out.WriteString(word)
			column += length
		}
		out.WriteString("\n")
	}
}

func summary(findings []Finding) string {
	count := map[Status]int{}
	for _, finding := range findings {
		count[finding.Status]++
	}
	parts := []string{fmt.Sprintf("%d ok", count[OK])}
	if n := count[Warning]; n > 0 {
		parts = append(parts, plural(n, "warning"))
	}
	if n := count[Failure]; n > 0 {
		parts = append(parts, plural(n, "failure"))
	}
	if n := count[NotApplicable]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not applicable", n))
	}
	return plural(len(findings), "check") + ": " + strings.Join(parts, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
