package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// Title is the title of the page.
const Title = "MyWeb operators, compared"

// Markdown is the report as a page. The numbers and the failures stand there as the lab prints them in a terminal.
func (r *Comparison) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s", Title, lead)
	fmt.Fprintf(&b, "- Date: %s, %d minutes\n", r.Date.UTC().Format("2006-01-02 15:04 UTC"), int(r.Took.Minutes()+0.5))
	for _, facts := range [][]string{{"Commit: " + r.Commit}, r.Machine, r.Versions} {
		fmt.Fprintf(&b, "- %s\n", escape(strings.Join(facts, ", ")))
	}
	var ways strings.Builder
	_ = r.Ways().Print(&ways) // a builder returns no error
	fmt.Fprintf(&b, "\n## A row for each\n\n%s%s", waysText, block(ways.String()))
	for _, f := range r.Families {
		r.matrix(&b, f)
	}
	r.details(&b)
	r.costs(&b)
	fmt.Fprintf(&b, "\n## How to repeat it\n\nIn the root of the workshop:\n%s", block(strings.Join(r.Commands, "\n")))
	b.WriteString("\n## How to read this page\n\n" + terms)
	return b.String()
}

const lead = `The lab ran each of these programs behind a proxy, which lists its requests and, where a check wants it, disturbs them.

`

// terms explains the words of the page.
const terms = `- **skipped**: the check does not apply to this operator, or did not run: the reason says which.
- **crash point**: the operator is killed right after one of its writes was committed, and started again. It passes when
  the end state is that of an undisturbed run.
`

// matrix has a family's groups, with their checks below, for each implementation.
func (r *Comparison) matrix(b *strings.Builder, f Family) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", f.Name, f.About)
	r.head(b, "check")
	for _, g := range f.Groups {
		in := func(o outcome.Result) bool { return o.Group == g.ID }
		r.row(b, "**"+escape(g.ID+": "+g.Title)+"**", func(name string) string { return summary(f.Outcomes[name], in) })
		for _, c := range r.checks(f, in) {
			is := func(o outcome.Result) bool { return o.Check == c.Check }
			r.row(b, "`"+c.Check+"` "+escape(c.Title), func(name string) string { return summary(f.Outcomes[name], is) })
		}
	}
}

func (r *Comparison) head(b *strings.Builder, first string) {
	b.WriteString("\n")
	r.row(b, first, r.titled)
	r.row(b, "---", func(string) string { return "---" })
}

// row writes a row of a table, with a cell for each implementation.
func (r *Comparison) row(b *strings.Builder, first string, cell func(name string) string) {
	b.WriteString("| " + first)
	for _, i := range r.Impls {
		b.WriteString(" | " + cell(i.Name))
	}
	b.WriteString(" |\n")
}

// titled is a name with its title: "03 (client-go by hand)".
func (r *Comparison) titled(name string) string {
	return escape(fmt.Sprintf("%s (%s)", name, r.impl(name).Title))
}

func (r *Comparison) impl(name string) Implementation {
	return r.Impls[slices.IndexFunc(r.Impls, func(i Implementation) bool { return i.Name == name })]
}

// checks returns some checks of a family, each once, in the order of the first implementation that has it.
func (r *Comparison) checks(f Family, in func(outcome.Result) bool) (checks []outcome.Result) {
	seen := map[string]bool{}
	for _, i := range r.Impls {
		for _, o := range f.Outcomes[i.Name] {
			if in(o) && !seen[o.Check] {
				checks = append(checks, o)
				seen[o.Check] = true
			}
		}
	}
	return checks
}

// summary is the verdict on some checks: failed when one failed, passed when none failed and one passed.
func summary(outcomes []outcome.Result, in func(outcome.Result) bool) string {
	outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o outcome.Result) bool { return !in(o) })
	for _, v := range []outcome.Verdict{outcome.Failed, outcome.Passed, outcome.Skipped} {
		switch n := outcome.Count(outcomes, v); {
		case n == 0:
		case n == len(outcomes):
			return fmt.Sprintf("**%s**", v)
		default:
			return fmt.Sprintf("**%s** %d of %d", v, n, len(outcomes))
		}
	}
	return "not run"
}

// costs has a row for each kind of request in each phase, and one for the memory.
func (r *Comparison) costs(b *strings.Builder) {
	b.WriteString("\n## Requests and memory\n")
	r.head(b, "requests of ten MyWebs")
	kinds := map[string]map[string]bool{}
	for _, i := range r.Impls {
		for phase, requests := range i.Requests {
			if kinds[phase] == nil {
				kinds[phase] = map[string]bool{}
			}
			for kind := range requests {
				kinds[phase][kind] = true
			}
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(kinds)) {
		r.row(b, "**"+phase+"**", func(name string) string { return fmt.Sprint(sum(r.impl(name).Requests[phase])) })
		for _, kind := range slices.Sorted(maps.Keys(kinds[phase])) {
			r.row(b, escape(kind), func(name string) string { return fmt.Sprint(r.impl(name).Requests[phase][kind]) })
		}
	}
	r.row(b, "**memory in steady state, after the restart**", func(name string) string {
		return fmt.Sprintf("%d MiB", (r.impl(name).Memory+miB/2)/miB)
	})
}

// details has the checks that did not pass, with their evidence.
func (r *Comparison) details(b *strings.Builder) {
	b.WriteString("\n## Checks that did not pass\n")
	for _, i := range r.Impls {
		var text strings.Builder
		for _, f := range r.Families {
			for _, o := range f.Outcomes[i.Name] {
				if o.Verdict != outcome.Passed {
					o.Expected = false // the page has the evidence of expected failures, too
					o.Print(&text, true)
				}
			}
		}
		fmt.Fprintf(b, "\n### %s\n", r.titled(i.Name))
		if text.Len() == 0 {
			text.WriteString("All passed.")
		}
		b.WriteString(block(text.String()))
	}
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>|&~$#]")

// escape returns text that Markdown shows unchanged in a line or a cell.
func escape(text string) string { return special.ReplaceAllString(text, `\$0`) }

// block is text that the page shows unchanged: an indented block of code.
func block(text string) string {
	visible := func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' {
			return ' '
		}
		return c
	}
	return "\n    " + strings.ReplaceAll(strings.Map(visible, strings.Trim(text, "\n")), "\n", "\n    ") + "\n"
}
