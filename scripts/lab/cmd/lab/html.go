package main

import (
	"bytes"
	"html"
	"os"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// pageStyle is all that a page needs besides its Markdown.
const pageStyle = "body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}" +
	"pre{background:#f4f4f4;padding:.5em;overflow-x:auto}table{display:block;overflow-x:auto}" +
	"td,th{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}"

// writeHTML writes a page of Markdown as HTML that needs no other file.
func writeHTML(file, title, markdown string) error {
	var page bytes.Buffer
	page.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title>\n<style>" + pageStyle + "</style>\n")
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(markdown), &page); err != nil {
		return err
	}
	return os.WriteFile(file, page.Bytes(), 0o644)
}
