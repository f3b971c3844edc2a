package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Title is the title of the page.
const Title = "MyWeb operators, compared"

// Markdown is the report as tables and text.
func (r *Report) Markdown() string {
	var b bytes.Buffer
	d := r.document()
	fmt.Fprintf(&b, "# %s\n\n%s\n", paragraph(d.Title), paragraph(d.Lead))
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "\n## %s\n", paragraph(s.Title))
		for _, block := range s.Blocks {
			block.markdown(&b)
		}
	}
	return b.String()
}

func (b block) markdown(w io.Writer) {
	if b.Text != "" {
		fmt.Fprintf(w, "\n%s\n", paragraph(b.Text))
	}
	if b.Table != nil {
		b.Table.markdown(w)
	}
	for _, f := range b.Failures {
		f.markdown(w)
	}
	if len(b.Code) > 0 {
		fmt.Fprint(w, "\n", fenced("sh", b.Code))
	}
	if len(b.List) > 0 {
		fmt.Fprintln(w)
	}
	for _, item := range b.List {
		fmt.Fprintf(w, "- %s\n", inCell(item))
	}
	if len(b.Terms) > 0 {
		fmt.Fprintln(w)
	}
	for _, t := range b.Terms {
		fmt.Fprintf(w, "- **%s**: %s\n", inCell(t.Word), inCell(t.Meaning))
	}
}

func (t *table) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n%s:\n\n", paragraph(t.Caption))
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	var head, rule []string
	for i, h := range t.Head {
		head = append(head, inCell(h))
		if t.Numbers && i > 0 {
			rule = append(rule, "---:")
		} else {
			rule = append(rule, "---")
		}
	}
	line(head)
	line(rule)
	for _, r := range t.Rows {
		var cells []string
		for i, c := range r.Cells {
			text := inCell(c.Text)
			if c.Verdict == suite.Failed || r.Group && i == 0 {
				text = "**" + text + "**"
			}
			if c.Code != "" {
				text = strings.TrimSpace(code(c.Code) + " " + text)
			}
			cells = append(cells, text)
		}
		line(cells)
	}
}

func (f failure) markdown(w io.Writer) {
	reason, more, _ := strings.Cut(f.Reason, "\n")
	fmt.Fprintf(w, "\n### %s: %s\n\n%s: %s\n", paragraph(f.Impl), code(f.Check), paragraph(f.Title), inCell(reason))
	if more != "" {
		fmt.Fprint(w, "\n", fenced("text", []string{more}))
	}
	if len(f.Evidence) > 0 {
		fmt.Fprint(w, "\n", fenced("text", f.Evidence))
	}
}

var (
	special = regexp.MustCompile("[\\\\`*_\\[\\]<>|&~$#]")
	marker  = regexp.MustCompile(`^(\d*)([-+.)])([-\s]|$)`)
	ticks   = regexp.MustCompile("`+")
)

// inCell escapes text so that Markdown shows it unchanged in a line, an item, or a cell.
func inCell(s string) string {
	lines := strings.Split(strings.TrimSpace(clean(s)), "\n")
	for i, line := range lines {
		line = special.ReplaceAllString(strings.TrimSpace(line), `\$0`)
		lines[i] = marker.ReplaceAllString(line, `$1\$2$3`) // otherwise it would be a list, or a rule
	}
	return strings.NewReplacer("\t", " ", space, " ").Replace(strings.Join(lines, " "))
}

// paragraph wraps text into lines as short as in a page written by hand.
func paragraph(s string) string { return inCell(strings.Join(strings.Fields(s), " ")) }

// code is a span of code, which may be in a cell.
func code(s string) string {
	s = strings.ReplaceAll(strings.Join(strings.Fields(clean(s)), " "), "|", `\|`)
	fence := longest(s, 0) + "`"
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// fenced is a block of code with a fence that is longer than any fence in the code.
func fenced(language string, lines []string) string {
	text := clean(strings.Join(lines, "\n"))
	fence := longest(text, 2) + "`"
	return fence + language + "\n" + text + "\n" + fence + "\n"
}

// longest returns the length of the longest run of backticks, or least if that is larger.
func longest(s string, least int) string {
	run := strings.Repeat("`", least)
	for _, t := range ticks.FindAllString(s, -1) {
		if len(t) > len(run) {
			run = t
		}
	}
	return run
}
