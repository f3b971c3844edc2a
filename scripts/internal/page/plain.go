package page

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// The text between these two comments on a page is for readers who run the commands by hand. It is omitted when the
// page is played.
const (
	byHand    = "<!-- by hand -->"
	byHandEnd = "<!-- end -->"
)

// plain returns the text of a paragraph for a terminal: without the marks of Markdown, with the text of a link in its
// place.
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

// IsLabel reports whether a paragraph only labels the block after it as an output. GitHub draws outputs and commands
// alike, so pages need the label.
func IsLabel(n ast.Node, source []byte) bool {
	block, ok := n.NextSibling().(*ast.FencedCodeBlock)
	if !ok || string(block.Language(source)) != "console" {
		return false
	}
	text := plain(n, source)
	for _, translated := range Labels {
		for english, label := range translated {
			if text == english || text == label {
				return true
			}
		}
	}
	return false
}

// Labels are the words above an output, by language and English label.
var Labels = map[string]map[string]string{
	"zh-TW": {"Output:": "輸出：", "Among the output:": "輸出中包含："},
	"ja":    {"Output:": "出力：", "Among the output:": "出力に含まれる行："},
	"ko":    {"Output:": "출력:", "Among the output:": "출력에 포함된 줄:"},
}
