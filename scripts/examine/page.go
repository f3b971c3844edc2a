package examine

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// Markdown is the report as a page: failures come first, by severity and cause.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, examined with a %s\n", Escape(r.Operator), r.Kind)
	fmt.Fprintf(&b, "\n%d findings passed, %d failed for %s, %d came late, %d skipped, in %v, on %s.\n",
		r.Count(Passed), r.Count(Failed), r.causes(), r.Count(Late), r.Count(Skipped), r.Took,
		r.Date.Format("2006-01-02 15:04 UTC"))
	if left := r.NotTried(); left != "" {
		fmt.Fprintf(&b, "\nNot tried: %s.\n", Escape(left))
	}
	if r.Interrupted {
		b.WriteString("\nThe examination was interrupted: later experiments did not run.\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", Escape(note))
	}
	for _, id := range r.Gone {
		fmt.Fprintf(&b, "\nThe baseline accepts %s, which did not fail in this run: take it off the list, or add "+
			"sometimes: true.\n", id)
	}
	if len(r.Children) > 0 {
		fmt.Fprintf(&b, "\nThe operator writes: %s.\n", Escape(strings.Join(r.Children, ", ")))
	}
	r.worst(&b)
	r.overview(&b)
	for _, s := range r.sections() {
		r.writeSection(&b, s)
	}
	if len(r.Creation) > 0 {
		fmt.Fprintf(&b, "\n## The creation, step by step\n\nThe events that the operator received, the requests that it "+
			"sent, and the lines that it printed (log).\n%s", Block("", r.Creation...))
	}
	return b.String()
}

// overview has a row for each section. A report of the lab has no requests by section.
func (r *Report) overview(b *strings.Builder) {
	heads, rule := "| experiment | passed | late | failed | skipped |", "| --- | --- | --- | --- | --- |"
	b.WriteString("\n## All experiments\n\n")
	if r.Requests != nil {
		b.WriteString("The requests include those for the samples that an experiment creates first.\n\n")
		heads, rule = heads+" reads | writes |", rule+" --- | --- |"
	}
	fmt.Fprintf(b, "%s\n%s\n", heads, rule)
	for _, s := range r.sections() {
		if !r.ran(s.ID) {
			continue
		}
		fmt.Fprintf(b, "| [%s](#%s) | %d | %d | %d | %d |", Escape(s.Title), anchor(s.Title), r.count(s.ID, Passed),
			r.count(s.ID, Late), r.count(s.ID, Failed), r.count(s.ID, Skipped))
		if n := r.Requests[s.ID]; r.Requests != nil {
			fmt.Fprintf(b, " %d | %d |", n.Reads, n.Writes)
		}
		b.WriteString("\n")
	}
}

// anchor is the link that a heading of Markdown gets.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(notOfAnchor.ReplaceAllString(title, "")), " ", "-")
}

// notOfAnchor matches the characters that a link to a heading leaves out.
var notOfAnchor = regexp.MustCompile(`[^\pL\pN _-]`)

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>|&~$#]")

// Escape returns a text of an operator that Markdown shows unchanged in a line or a cell.
func Escape(text string) string { return special.ReplaceAllString(text, `\$0`) }

// Block has lines that a page shows unchanged: an indented block of code, which no line can end.
func Block(margin string, lines ...string) string {
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	return "\n" + margin + "    " + strings.ReplaceAll(text, "\n", "\n"+margin+"    ") + "\n"
}

// named is the title of a result, after its ID unless the ID follows from the title.
func named(f outcome.Result) string {
	if f.ID == "" || f.ID == idOf(f.Experiment, f.Title) {
		return Escape(f.Title)
	}
	return "`" + strings.ReplaceAll(f.ID, "`", "") + "` " + Escape(f.Title)
}

// worst lists the failures by severity, and groups those of one cause.
func (r *Report) worst(b *strings.Builder) {
	for _, s := range append(severities[:len(severities):len(severities)], "") {
		all := r.failures(s)
		if len(all) == 0 {
			continue
		}
		heading := cmp.Or(string(s), "failures")
		fmt.Fprintf(b, "\n## %s\n", strings.ToUpper(heading[:1])+heading[1:])
		seen := map[string]bool{}
		for _, first := range all {
			if seen[first.Cause] {
				continue
			}
			seen[first.Cause] = true
			if first.Cause != "" {
				fmt.Fprintf(b, "\nLikely cause: %s. %s\n", first.Cause, first.Others)
			}
			b.WriteString("\n")
			for _, f := range all {
				if f.Cause == first.Cause {
					link := anchor(r.section(f.Experiment).Title)
					fmt.Fprintf(b, "- **failed**: [%s](#%s): %s\n", named(f), link, Escape(firstLine(f.What)))
				}
			}
		}
	}
	var accepted []string
	for _, f := range r.Findings {
		if f.Verdict == Failed && f.Accepted != "" {
			line := fmt.Sprintf("- %s: %s. Accepted: %s", named(f), Escape(firstLine(f.What)), Escape(f.Accepted))
			accepted = append(accepted, line)
		}
	}
	if len(accepted) > 0 {
		fmt.Fprintf(b, "\n## Accepted\n\n%s\n", strings.Join(accepted, "\n"))
	}
}

func (r *Report) writeSection(b *strings.Builder, s Section) {
	if !r.ran(s.ID) {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", Escape(s.Title), s.Why)
	r.items(b, s.ID, false)
	if passed := r.count(s.ID, Passed); passed > 0 {
		fmt.Fprintf(b, "\n<details><summary>%d passed</summary>\n\n", passed)
		r.items(b, s.ID, true)
		b.WriteString("\n</details>\n")
	}
}

// items lists the findings of an experiment that passed, or the others.
func (r *Report) items(b *strings.Builder, experiment string, passed bool) {
	for _, f := range r.Findings {
		if f.Experiment != experiment || (f.Verdict == Passed) != passed {
			continue
		}
		text := strings.TrimSuffix(named(f)+": "+Escape(strings.TrimSpace(f.What)), ": ")
		fmt.Fprintf(b, "- **%s**: %s\n", f.Verdict, strings.ReplaceAll(text, "\n", "\n  "))
		if evidence := slices.Concat(f.Evidence, f.Counts()); len(evidence) > 0 {
			b.WriteString(Block("  ", evidence...) + "\n")
		}
	}
}

// Table has a row for each section and each finding of some reports, and a column for each report.
func Table(reports ...*Report) string {
	var b strings.Builder
	heads, rule := "| check |", "| --- |"
	var sections []Section
	for _, r := range reports {
		heads, rule = heads+" "+Escape(r.Operator)+" |", rule+" --- |"
		for _, s := range r.sections() {
			if r.ran(s.ID) && !slices.Contains(sections, s) {
				sections = append(sections, s)
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n%s\n", heads, rule)
	row := func(first string, chosen func(outcome.Result) bool) {
		b.WriteString("| " + first + " |")
		for _, r := range reports {
			b.WriteString(" " + r.summary(chosen) + " |")
		}
		b.WriteString("\n")
	}
	for _, s := range sections {
		row("**"+Escape(s.Title)+"**", func(f outcome.Result) bool { return f.Experiment == s.ID })
		listed := map[string]bool{}
		for _, r := range reports {
			for _, f := range r.Findings {
				if f.Experiment == s.ID && !listed[f.ID] {
					listed[f.ID] = true
					row(named(f), func(other outcome.Result) bool { return other.ID == f.ID })
				}
			}
		}
	}
	return b.String()
}

// summary is the verdict on some findings: the worst of them, and how many have it.
func (r *Report) summary(chosen func(outcome.Result) bool) string {
	count, all := map[Verdict]int{}, 0
	for _, f := range r.Findings {
		if chosen(f) {
			count[f.Verdict]++
			all++
		}
	}
	for _, v := range []Verdict{Failed, Late, Passed, Skipped} {
		if n := count[v]; n == all && n > 0 {
			return fmt.Sprintf("**%s**", v)
		} else if n > 0 {
			return fmt.Sprintf("**%s** %d of %d", v, n, all)
		}
	}
	return "not run"
}
