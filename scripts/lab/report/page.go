package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine"
)

// Title is the title of the page.
const Title = "MyWeb operators, compared"

// Markdown is the page with the reports side by side. The evidence of each is in its own page.
func (r *Comparison) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nThe lab ran each of these programs behind a proxy, which lists its requests and, where a check "+
		"wants it, disturbs them.\n\n", Title)
	fmt.Fprintf(&b, "- Date: %s, %d minutes\n", r.Date.UTC().Format("2006-01-02 15:04 UTC"), int(r.Took.Minutes()+0.5))
	for _, facts := range [][]string{{"Commit: " + r.Commit}, r.Machine, r.Versions} {
		fmt.Fprintf(&b, "- %s\n", examine.Escape(strings.Join(facts, ", ")))
	}
	var reports []*examine.Report
	for _, i := range r.Impls {
		reports = append(reports, i.Report)
		name := examine.Escape(i.Report.Operator)
		fmt.Fprintf(&b, "- [%s](%s/examine.html): its failures, with their evidence\n", name, i.Name)
	}
	var ways strings.Builder
	_ = r.Ways().Print(&ways) // a builder returns no error
	fmt.Fprintf(&b, "\n## A row for each\n\n%s%s", waysText, examine.Block("", ways.String()))
	fmt.Fprintf(&b, "\n## Checks\n\nA skipped check does not apply to this operator, or did not run.\n%s",
		examine.Table(reports...))
	r.costs(&b)
	fmt.Fprintf(&b, "\n## How to repeat it\n\nIn the root of the workshop:\n%s", examine.Block("", r.Commands...))
	return b.String()
}

// costs has a row for each kind of request in each phase, and one for the memory.
func (r *Comparison) costs(b *strings.Builder) {
	b.WriteString("\n## Requests and memory\n\n")
	row := func(first string, cell func(Implementation) string) {
		b.WriteString("| " + first + " |")
		for _, i := range r.Impls {
			b.WriteString(" " + cell(i) + " |")
		}
		b.WriteString("\n")
	}
	row("requests of ten MyWebs", func(i Implementation) string { return examine.Escape(i.Report.Operator) })
	row("---", func(Implementation) string { return "---" })
	kinds := map[string]map[string]int{}
	for _, i := range r.Impls {
		for phase, requests := range i.counted().Requests {
			if kinds[phase] == nil {
				kinds[phase] = map[string]int{}
			}
			maps.Copy(kinds[phase], requests)
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(kinds)) {
		row("**"+phase+"**", func(i Implementation) string { return fmt.Sprint(sum(i.counted().Requests[phase])) })
		for _, kind := range slices.Sorted(maps.Keys(kinds[phase])) {
			row(examine.Escape(kind), func(i Implementation) string { return fmt.Sprint(i.counted().Requests[phase][kind]) })
		}
	}
	row("**memory in steady state, after the restart**", func(i Implementation) string {
		return fmt.Sprintf("%d MiB", (i.counted().Memory+miB/2)/miB)
	})
}
