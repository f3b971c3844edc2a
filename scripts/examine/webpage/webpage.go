// Package webpage writes reports for a browser.
package webpage

import (
	"bytes"
	"html"
	"os"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// pageStyle is the style of a page.
const pageStyle = "body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}" +
	"pre{background:#f4f4f4;padding:.5em;overflow-x:auto}table{display:block;overflow-x:auto}" +
	"td,th{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}" +
	".failed{color:#b00020}.passed{color:#00691c}.late{color:#7a4b00}.skipped{color:#555}"

// coloured adds a colour to the word of a verdict.
var coloured = strings.NewReplacer("<strong>failed</strong>", `<strong class="failed">failed</strong>`,
	"<strong>passed</strong>", `<strong class="passed">passed</strong>`,
	"<strong>late</strong>", `<strong class="late">late</strong>`,
	"<strong>skipped</strong>", `<strong class="skipped">skipped</strong>`)

// Write writes a page of Markdown as HTML that needs no other file.
func Write(file, title, markdown string) error {
	var page bytes.Buffer
	page.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title>\n<style>" + pageStyle + "</style>\n")
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := md.Convert([]byte(markdown), &page); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(coloured.Replace(page.String())), 0o644)
}
