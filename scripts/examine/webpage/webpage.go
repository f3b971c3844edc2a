// Package webpage writes reports for a browser.
package webpage

import (
	"bytes"
	_ "embed"
	"html"
	"os"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

//go:embed style.css
var style string

// coloured adds a colour to the word of a verdict.
var coloured = strings.NewReplacer("<strong>failed</strong>", `<strong class="failed">failed</strong>`,
	"<strong>passed</strong>", `<strong class="passed">passed</strong>`,
	"<strong>late</strong>", `<strong class="late">late</strong>`,
	"<strong>skipped</strong>", `<strong class="skipped">skipped</strong>`)

// Write writes a page of Markdown as HTML that needs no other file.
func Write(file, title, markdown string) error {
	var page bytes.Buffer
	page.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">" +
		"<meta name=\"viewport\" content=\"width=device-width\"><title>" + html.EscapeString(title) +
		"</title>\n<style>\n" + style + "</style>\n")
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(folds{}, 1))))
	if err := md.Convert([]byte(markdown), &page); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(coloured.Replace(page.String())), 0o644)
}

// folds renders no other HTML of a page than the lines before and after a folded list. Other HTML is a text of an operator, such
// as <name>, and is shown as it is.
type folds struct{}

var fold = regexp.MustCompile(`^(<details><summary>[0-9]+ passed</summary>|</details>)\s*$`)

func (folds) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		text := node.Lines().Value(source)
		if closing := node.(*ast.HTMLBlock).ClosureLine; !closing.IsEmpty() {
			text = append(bytes.Clone(text), closing.Value(source)...)
		}
		if !fold.Match(text) {
			text = []byte("<p>" + html.EscapeString(string(text)) + "</p>\n")
		}
		if entering {
			_, _ = w.Write(text)
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(html.EscapeString(string(node.(*ast.RawHTML).Segments.Value(source))))
		}
		return ast.WalkContinue, nil
	})
}
