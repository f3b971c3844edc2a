package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/lab/benchmark"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A document is the content of the page, before it becomes Markdown.
type document struct {
	Title, Lead string
	Sections    []section
}

type section struct {
	Title  string
	Blocks []block
}

// A block has one field set, which determines its kind.
type block struct {
	Text     string
	List     []string
	Table    *table
	Failures []failure
	Code     []string // lines of a shell
	Terms    []term
}

type table struct {
	Caption string
	Head    []string
	Rows    []row
	// Numbers means that all columns but the first contain numbers.
	Numbers bool
}

type row struct {
	// Group rows are the heads of the rows below them.
	Group bool
	Cells []cell
}

type cell struct {
	Code, Text string
	// Verdict is the verdict of the text: a failure is highlighted.
	Verdict suite.Verdict
}

type failure struct {
	Impl, Check, Title, Reason string
	Evidence                   []string
}

type term struct{ Word, Meaning string }

// names returns the implementations: the columns of each table.
func (r *Report) names() (names []string) {
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, i := range r.Impls {
		add(i.Name)
	}
	for _, f := range r.Families {
		for _, name := range sortedKeys(f.Outcomes) {
			add(name)
		}
	}
	if r.Bench != nil {
		for _, m := range r.Bench.Implementations {
			add(m.Name)
		}
	}
	return names
}

// titled is a name with its title: "03 (client-go by hand)".
func (r *Report) titled(name string) string {
	for _, i := range r.Impls {
		if i.Name == name && i.Title != "" {
			return fmt.Sprintf("%s (%s)", name, i.Title)
		}
	}
	return name
}

func (r *Report) document() document {
	d := document{Title: Title, Lead: r.lead()}
	add := func(title string, blocks ...block) {
		d.Sections = append(d.Sections, section{title, blocks})
	}
	var left []string // missing parts of the report
	if len(r.Impls) > 0 {
		add("A row for each", block{Text: waysText}, block{Table: r.Ways().table()})
	}
	if len(r.Families) > 0 {
		add("The verdict at a glance", r.glance()...)
	} else {
		left = append(left, "the checks: behaviours, crash points and faults")
	}
	for _, f := range r.Families {
		if len(checksOf(f)) == 0 {
			left = append(left, "the checks of "+f.Name)
			continue
		}
		add(capital(f.Name), r.matrix(f)...)
	}
	if len(r.Families) > 0 {
		add("Failures", r.failures()...)
		add("Skipped checks", r.skips()...)
	}
	m := measurements{Result: cmp.Or(r.Bench, &benchmark.Result{}), names: r.names()}
	if len(m.Implementations) == 0 {
		left = append(left, "the benchmark: requests, times, memory, sizes")
	}
	d.Sections = append(d.Sections, m.sections()...)
	if left = append(left, m.left...); len(left) > 0 {
		add("Not in this run",
			block{Text: "For the missing parts, run make compare in the root of the workshop, leaving nothing out; " +
				"a note on this page lists measurements that are impossible on this machine."},
			block{List: left})
	}
	if notes := slices.Concat(r.Notes, m.Notes); len(notes) > 0 {
		add("Notes", block{List: notes})
	}
	if len(r.Commands) > 0 {
		add("How to repeat it", block{Text: "These commands made this page, in the root of the workshop. " +
			"They need Go and nothing else: no Docker, no cluster."}, block{Code: r.Commands})
	}
	add("How to read this page", block{Terms: terms})
	return d
}

// lead is a paragraph about the compared operators.
func (r *Report) lead() string {
	var who []string
	for _, name := range r.names() {
		who = append(who, r.titled(name))
	}
	if len(who) == 0 {
		return "The lab ran no operator."
	}
	text := fmt.Sprintf("The lab ran %s, %s. Each is a program with a kubeconfig, seen from outside: behind a proxy "+
		"that lists its requests and, where a check wants it, disturbs them.", count(len(who), "MyWeb operator"), and(who))
	if !r.Date.IsZero() {
		text += " The run began on " + r.Date.UTC().Format("2 January 2006 at 15:04 UTC")
		if r.Took > 0 {
			text += " and took " + duration(r.Took)
		}
		text += "."
	}
	if r.Commit != "" {
		text += " The checkout was at commit " + r.Commit + "."
	}
	for _, part := range []struct {
		before string
		lines  []string
	}{{"The machine", r.Machine}, {"The versions", r.Versions}} {
		if len(part.lines) > 0 {
			text += " " + part.before + ": " + strings.Join(part.lines, "; ") + "."
		}
	}
	return text
}

// glance is the verdict as a table with a line for each family.
func (r *Report) glance() []block {
	t := &table{Caption: "Checks that passed, failed and were skipped", Head: []string{"checks"}}
	var lines []string
	for _, name := range r.names() {
		t.Head = append(t.Head, r.titled(name))
		var all []suite.Outcome
		for _, f := range r.Families {
			all = append(all, f.Outcomes[name]...)
		}
		failed := suite.Count(all, suite.Failed)
		switch ran := failed + suite.Count(all, suite.Passed); {
		case ran == 0:
			lines = append(lines, name+": no check was run.")
		case failed > 0:
			lines = append(lines, fmt.Sprintf("%s: %d of %s failed.", name, failed, count(ran, "check")))
		default:
			lines = append(lines, fmt.Sprintf("%s: passed every check that applies to it (%s).", name, number(ran)))
		}
	}
	for _, f := range r.Families {
		cells := []cell{{Text: capital(f.Name)}}
		for _, name := range r.names() {
			o := f.Outcomes[name]
			cells = append(cells,
				cell{Verdict: together(o), Text: fmt.Sprintf("%d"+space+"passed, %d"+space+"failed, %d"+space+"skipped",
					suite.Count(o, suite.Passed), suite.Count(o, suite.Failed), suite.Count(o, suite.Skipped))})
			if len(o) == 0 {
				cells[len(cells)-1].Text = "not run"
			}
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return []block{{List: lines}, {Table: t}}
}

// together is the verdict on several outcomes: failed when one failed; passed when none failed and one passed.
func together(outcomes []suite.Outcome) suite.Verdict {
	for _, v := range []suite.Verdict{suite.Failed, suite.Passed, suite.Skipped} {
		if suite.Count(outcomes, v) > 0 {
			return v
		}
	}
	return ""
}

// checksOf returns each check of a family once, in the order of the first implementation that has it.
func checksOf(f Family) (checks []suite.Outcome) {
	seen := map[string]bool{}
	for _, name := range sortedKeys(f.Outcomes) {
		for _, o := range f.Outcomes[name] {
			if !seen[o.Check] {
				checks = append(checks, o)
			}
			seen[o.Check] = true
		}
	}
	return checks
}

// groupsOf returns the groups of a family, and the groups that only its checks name.
func groupsOf(f Family) []Group {
	groups := slices.Clone(f.Groups)
	for _, o := range checksOf(f) {
		if !slices.ContainsFunc(groups, func(g Group) bool { return g.ID == o.Group }) {
			groups = append(groups, Group{ID: o.Group})
		}
	}
	return groups
}

// matrix has a family's groups, with their checks below, for each implementation.
func (r *Report) matrix(f Family) []block {
	names, checks := r.names(), checksOf(f)
	t := &table{Caption: fmt.Sprintf("Every check of %s (%d)", f.Name, len(checks)),
		Head: append([]string{"check"}, names...)}
	for _, g := range groupsOf(f) {
		in := func(o suite.Outcome) bool { return o.Group == g.ID }
		cells := []cell{{Text: strings.TrimSuffix(g.ID+": "+g.Title, ": ")}}
		for _, name := range names {
			cells = append(cells, summary(filter(f.Outcomes[name], in)))
		}
		t.Rows = append(t.Rows, row{Group: true, Cells: cells})
		for _, c := range filter(checks, in) {
			cells := []cell{{Code: c.Check, Text: c.Title}}
			for _, name := range names {
				cells = append(cells, summary(filter(f.Outcomes[name], func(o suite.Outcome) bool { return o.Check == c.Check })))
			}
			t.Rows = append(t.Rows, row{Cells: cells})
		}
	}
	return []block{{Text: f.About}, {Table: t}}
}

// summary puts the verdict on some checks into words.
func summary(outcomes []suite.Outcome) cell {
	v := together(outcomes)
	c := cell{Verdict: v, Text: string(v)}
	n, skipped := suite.Count(outcomes, v), suite.Count(outcomes, suite.Skipped)
	switch {
	case v == "":
		c.Text = "not run"
	case v == suite.Failed && len(outcomes) > 1:
		c.Text = fmt.Sprintf("failed, %d of %d", n, len(outcomes)-skipped)
	case v == suite.Passed && skipped > 0:
		c.Text = fmt.Sprintf("passed, %d skipped", skipped)
	}
	return c
}

func (r *Report) failures() []block {
	var failed []failure
	for _, f := range r.Families {
		for _, name := range r.names() {
			for _, o := range f.Outcomes[name] {
				if o.Verdict == suite.Failed {
					failed = append(failed, failure{name, o.Check, o.Title, o.Reason, o.Evidence})
				}
			}
		}
	}
	if len(failed) == 0 {
		return []block{{Text: "No check failed."}}
	}
	return []block{{Failures: failed}}
}

// skips lists the reasons once for all implementations that share them.
func (r *Report) skips() []block {
	t := &table{Caption: "Checks that were skipped, and why", Head: []string{"check", "operators", "reason"}}
	at := map[[2]string]int{}
	for _, f := range r.Families {
		for _, name := range r.names() {
			for _, o := range f.Outcomes[name] {
				if o.Verdict != suite.Skipped {
					continue
				}
				key := [2]string{o.Check, o.Reason}
				if i, ok := at[key]; ok {
					t.Rows[i].Cells[1].Text += ", " + name
					continue
				}
				at[key] = len(t.Rows)
				t.Rows = append(t.Rows, row{Cells: []cell{{Code: o.Check, Text: o.Title}, {Text: name}, {Text: o.Reason}}})
			}
		}
	}
	if len(t.Rows) == 0 {
		return []block{{Text: "No check was skipped."}}
	}
	return []block{{Table: t}}
}

var terms = []term{
	{"passed", "The experiment took place, and the lab saw everything that the check demands."},
	{"failed", "The experiment took place, and something differed: the reason says what, the evidence shows it."},
	{"skipped", "No experiment took place, because it does not apply to this operator or cannot run here: the " +
		"reason says which. It counts neither for nor against."},
	{"crash point", "The operator is killed (SIGKILL) right after one of its writes was committed, and started again. " +
		"It passes when the end state is that of an undisturbed run."},
	{"request", "A line of the proxy's ledger: what the operator really sent, refused ones included. The audit log and " +
		"the API server's own counter agree with it."},
	{"no-op write", "A write that was accepted and changed nothing: useless work for the API server."},
	{"sync", "The operator handled one MyWeb, by its own metric."},
	{"A B B A", "The order of the runs in a pair: both operators come first and last equally often, so a machine that " +
		"grows slower harms both alike."},
	{"interval", "The range that holds the true median in at least 95 of 100 such runs, whatever the distribution of the " +
		"times is. It needs six pairs. When the interval of a ratio holds 1, no difference can be stated."},
	{"A/A control", "The same measurement of A against itself: it should be 1. When its interval leaves 0.95 to 1.05, " +
		"the machine is too noisy, and no ratio is printed."},
	{"p50, p99", "Half of the MyWebs were completed within the first, 99 of 100 within the second; the latter is only " +
		"given from 1,000 samples on."},
	{"open loop", "MyWebs are created at a fixed rate, whether earlier ones are completed or not, so a slow operator " +
		"cannot slow down its own test."},
	{"efficiency",
		"The time of a bare loop of the same writes, divided by the operator's time: 1.00 is as fast as can be."},
	{"resident set", "The memory that the operating system counts: the heap, the program's code and space kept for later."},
}
