package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

//go:embed files/compare.html.tmpl
var pageTemplate string

var htmlPage = template.Must(template.New("compare.html").Funcs(template.FuncMap{
	"clean": clean,
	"mark":  mark,
}).Parse(pageTemplate))

// mark goes before a verdict's word, for a reader who cannot see the colours.
func mark(v suite.Verdict) string {
	return map[suite.Verdict]string{suite.Passed: "✓", suite.Failed: "✗", suite.Skipped: "–"}[v]
}

// WriteHTML writes the report as one page that needs no network and no other file.
func (r *Report) WriteHTML(w io.Writer) error {
	var page bytes.Buffer
	if err := htmlPage.Execute(&page, r.document()); err != nil {
		return err
	}
	_, err := page.WriteTo(w)
	return err
}
