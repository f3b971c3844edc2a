// Package translation makes the pages of other languages. A page in another language has the prose of a PO file; its
// blocks, tables of commands, links and pictures are those of the English page.
package translation

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"example.com/operator-workshop/scripts/internal/page"
)

// A segment is a piece of prose: a heading, a paragraph, the text of a list item, a cell of a table, or a summary.
type segment struct {
	text        string // in one line
	line        int
	start, stop int    // in the source
	heading     bool   // so links lead to it
	label       bool   // of the block after it: "Output:"
	prose       bool   // a word outside of code
	from        string // the file of a sentence
}

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))
	summary  = regexp.MustCompile(`<summary>(.*?)</summary>`)
	// noProse matches text that is the same in every language: code, comments and tags, addresses.
	noProse = regexp.MustCompile("(`+)[^`]+?(`+)|<!--.*?-->|<[^>]*>|\\]\\([^)]*\\)|https?://\\S+")
	letters = regexp.MustCompile(`\pL\pL`)
)

// segments returns the text of a page that is not in blocks, in order.
func segments(source []byte) (all []segment) {
	add := func(s segment) {
		s.line = 1 + bytes.Count(source[:s.start], []byte("\n"))
		s.prose = letters.MatchString(noProse.ReplaceAllString(s.text, ""))
		all = append(all, s)
	}
	doc := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || node.Type() == ast.TypeInline {
			return ast.WalkContinue, nil
		}
		switch node.(type) {
		case *ast.HTMLBlock:
			for i := range node.Lines().Len() {
				line := node.Lines().At(i)
				for _, at := range summary.FindAllSubmatchIndex(line.Value(source), -1) {
					start, stop := line.Start+at[2], line.Start+at[3]
					add(segment{text: string(source[start:stop]), start: start, stop: stop})
				}
			}
		case *ast.Heading, *ast.Paragraph, *ast.TextBlock, *east.TableCell:
			s := segment{label: page.IsLabel(node, source)}
			_, s.heading = node.(*ast.Heading)
			var words []string
			for i := range node.Lines().Len() {
				line := node.Lines().At(i)
				if i == 0 {
					s.start = line.Start
				}
				s.stop = line.Start + len(bytes.TrimRight(line.Value(source), " \n"))
				words = append(words, strings.TrimSpace(string(line.Value(source))))
			}
			if s.text = strings.Join(words, " "); s.text != "" {
				add(s)
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return all
}
