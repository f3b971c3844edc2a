package doctor

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"example.com/operator-workshop/scripts/examine/output"
)

// width is the longest line that Print writes, unless a single word is longer: a path or a command is never cut.
const width = 100

var colours = map[Status]string{OK: "32", Warning: "33", Failure: "31", NotApplicable: "2"}

// Print writes one line for each finding that needs no action, the fields What, Why and Fix of each other finding, and
// a count at the end. With color, the status words have ANSI colours.
func Print(w io.Writer, findings []Diagnosis, color bool) error {
	longest := 0
	for _, finding := range findings {
		longest = max(longest, len(finding.Check))
	}
	var out strings.Builder
	for _, finding := range findings {
		status := fmt.Sprintf("%-4s", finding.Status)
		if color {
			status = "\x1b[" + colours[finding.Status] + "m" + status + "\x1b[0m"
		}
		if finding.Status < Warning {
			wrap(&out, fmt.Sprintf("%s  %-*s  ", status, longest, finding.Check), longest+8, finding.What)
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

// Brief returns one line about a machine and its findings, for an instructor who looks at many machines: whether the
// machine is good enough, a description of it, and the IDs of the checks that need an action.
func Brief(ctx context.Context, m Machine, findings []Diagnosis) string {
	found := map[Status][]string{}
	memory, free, goes, docker := "? GiB", "? GB free", "go:none", "no"
	for _, finding := range findings {
		found[finding.Status] = append(found[finding.Status], finding.ID())
		switch {
		case finding.Check == "Docker" && finding.Status == OK:
			docker = "yes"
		case finding.Check == "Go" && finding.Status == OK:
			goes, _, _ = strings.Cut(finding.What, " ")
		}
	}
	if bytes, _, err := m.Memory(ctx); err == nil {
		memory = fmt.Sprintf("%.0f GiB", float64(bytes)/gib)
	}
	if bytes, err := m.Disk(existing(m.Repository)); err == nil {
		free = fmt.Sprintf("%d GB free", bytes/1e9)
	}
	line := fmt.Sprintf("%s %s/%s %s %d cores %s %s docker:%s", Worst(findings), m.OS, runtime.GOARCH, goes,
		runtime.NumCPU(), memory, free, docker)
	for _, status := range []Status{Failure, Warning} {
		if ids := found[status]; len(ids) > 0 {
			line += fmt.Sprintf(" %s:%s", status, strings.Join(ids, ","))
		}
	}
	return line
}

// wrap writes text after first, which fills the line up to the column indent; further lines start at that column.
func wrap(out *strings.Builder, first string, indent int, text string) {
	lines := output.Wrap(text, width-indent)
	out.WriteString(first + strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", indent)) + "\n")
}

func summary(findings []Diagnosis) string {
	count := map[Status]int{}
	for _, finding := range findings {
		count[finding.Status]++
	}
	parts := []string{fmt.Sprintf("%d checks", len(findings))}
	for _, status := range []Status{OK, Warning, Failure, NotApplicable} {
		if count[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[status], status))
		}
	}
	return strings.Join(parts, ", ")
}
