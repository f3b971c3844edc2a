package page

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// What stands between these two comments on a page is for who runs it by hand, and is left out when the page is played.
const (
	byHand    = "<!-- by hand -->"
	byHandEnd = "<!-- end -->"
)

// plain is the text of a paragraph as a terminal shows it: without the marks of Markdown, links by their text.
func plain(n ast.Node, source []byte) string {
	var text strings.Builder
	skipped := false
	_ = ast.Walk(n, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch inline := node.(type) {
		case *ast.RawHTML:
			switch string(inline.Segments.Value(source)) {
			case byHand:
				skipped = true
			case byHandEnd:
				skipped = false
			}
		case *ast.AutoLink:
			if !skipped {
				text.Write(inline.URL(source))
			}
		case *ast.Text:
			if !skipped {
				text.Write(inline.Value(source))
			}
			if inline.SoftLineBreak() || inline.HardLineBreak() {
				text.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(text.String())
}

// IsLabel reports whether a paragraph says only that the block after it is an output. GitHub draws outputs and commands
// alike, and needs the words.
func IsLabel(n ast.Node, source []byte) bool {
	block, ok := n.NextSibling().(*ast.FencedCodeBlock)
	if !ok || string(block.Language(source)) != "console" {
		return false
	}
	text := plain(n, source)
	return text == "Output:" || text == "Among the output:"
}
