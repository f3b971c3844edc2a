package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// hostile is text that breaks a page that does not escape it.
const hostile = "<script>alert('x')</script> | a `tick`, ```` four, *stars* & [link](x) \\| \x1b[31mred\x1b[0m"

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a run of 03 and 04: 04 fails a check, and both skip one.
func sample() *Comparison {
	r := &Comparison{
		Date: time.Date(2026, 5, 4, 10, 12, 0, 0, time.UTC), Took: 17*time.Minute + 42*time.Second, Commit: "73bc340+changes",
		Machine: []string{"2 cores", "24 GB", "linux/amd64"}, Versions: []string{"Kubernetes 1.37.1", "etcd 3.6.4"},
		Commands: []string{"make compare IMPL=03,04"},
		Impls:    []Implementation{{Name: "03", Title: "client-go by hand"}, {Name: "04", Title: "controller-runtime"}},
		Notes:    []string{"04: a note with " + hostile},
	}
	behaviours := Family{Name: "Behaviours", About: "The behaviours that every MyWeb operator shows.",
		Groups: []Group{{"1", "children appear"}, {"2", "a page with | and *"}}, Outcomes: map[string][]outcome.Result{}}
	crashes := Family{Name: "Crash points", About: "The operator dies.", Groups: []Group{{"creation", "from nothing"}},
		Outcomes: map[string][]outcome.Result{}}
	for n, i := range r.Impls {
		appears := outcome.Result{Check: "behaviour/01-appear", Title: "three children", Group: "1", Verdict: outcome.Passed}
		owned := outcome.Result{Check: "behaviour/01-owned", Title: "owned", Group: "1", Verdict: outcome.Passed}
		if i.Name == "04" {
			owned.Verdict, owned.Reason, owned.Expected = outcome.Failed, "two reasons:\n1. the ConfigMap\n- the Service", true
			owned.Evidence = []string{"12:04:01.220 patch deployments web 200 moved", hostile}
		}
		rolls := outcome.Result{Check: "behaviour/02-rolls", Title: "the pods roll", Group: "2", Verdict: outcome.Skipped,
			Reason: "it has no rollout"}
		behaviours.Outcomes[i.Name] = []outcome.Result{appears, owned, rolls}
		for sequence := range 3 {
			crashes.Outcomes[i.Name] = append(crashes.Outcomes[i.Name], outcome.Result{
				Check: fmt.Sprintf("crash/creation-%03b", sequence), Title: "converges", Group: "creation", Verdict: outcome.Passed})
		}
		r.Impls[n].Requests = map[string]map[string]int{"creation of 10": {"apply configmaps": 10 + 3*n}, "steady state of 10": {}}
		r.Impls[n].Memory = 54 << 20
		r.Impls[n].Static = Static{BinaryBytes: 44 << 20, Permissions: "14", Written: 1240, Files: 9}
	}
	r.Families = []Family{behaviours, crashes}
	return r
}

// shown is the text that a reader of the page sees.
func shown(t *testing.T, page string) string {
	t.Helper()
	var out bytes.Buffer
	must(t, goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(page), &out))
	doc, err := html.Parse(&out)
	must(t, err)
	var text strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		}
	}
	return text.String()
}

// TestNothingIsLost checks that every outcome, with all its texts, is on the page, and that it is shown as text.
func TestNothingIsLost(t *testing.T) {
	r := sample()
	page := r.Markdown()
	want := append([]string{"04 (controller-runtime)", "2026-05-04 10:12 UTC, 18 minutes", r.Commit, "03 1240 9 2/3 3/3 – 1 0 44 14",
		"apply configmaps", "2: a page with | and *", "creation: "}, r.Commands...)
	want = append(append(want, r.Machine...), r.Versions...)
	for _, f := range r.Families {
		want = append(want, f.Name, f.About)
		for _, o := range f.Outcomes["04"] {
			want = append(append(want, o.Check, o.Title), strings.Split(o.Reason, "\n")...)
			want = append(want, o.Evidence...)
		}
	}
	text := strings.Join(strings.Fields(shown(t, page)), " ")
	for _, w := range want {
		if w = strings.ReplaceAll(w, "\x1b", " "); !strings.Contains(text, strings.Join(strings.Fields(w), " ")) {
			t.Errorf("the page lacks %q:\n%s", w, page)
		}
	}
	if n := strings.Count(text, hostile[:9]); n != 2 { // in the evidence, and in the note on a row
		t.Errorf("the page shows the hostile text %d times", n)
	}
}

// TestMatrix checks that each cell has the outcome of its column and row.
func TestMatrix(t *testing.T) {
	r := sample()
	r.Families[0].Outcomes["03"] = r.Families[0].Outcomes["03"][:1] // its run was stopped
	page := r.Markdown()
	for _, want := range []string{
		"| check | 03 (client-go by hand) | 04 (controller-runtime) |\n| --- | --- | --- |\n",
		"| **1: children appear** | **passed** | **failed** 1 of 2 |\n",
		"| `behaviour/01-owned` owned | not run | **failed** |\n",
		"| `behaviour/02-rolls` the pods roll | not run | **skipped** |\n",
		"\n### 03 (client-go by hand)\n\n    All passed.\n",
		"| **creation of 10** | 10 | 13 |\n| apply configmaps | 10 | 13 |\n| **steady state of 10** | 0 | 0 |\n" +
			"| **memory in steady state, after the restart** | 54 MiB | 54 MiB |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line is\n%s\nin\n%s", want, page)
		}
	}
}

// TestMarkdownIsSound checks that no text of an operator becomes a link, HTML or emphasis.
func TestMarkdownIsSound(t *testing.T) {
	for name, r := range map[string]*Comparison{"two operators": sample(), "nothing": {}} {
		tree := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader([]byte(r.Markdown())))
		err := ast.Walk(tree, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.HTMLBlock, *ast.RawHTML, *ast.Link, *ast.Image:
				t.Errorf("%s: %s that nobody wrote", name, n.Kind())
			case *ast.Emphasis:
				if n.Level != 2 {
					t.Errorf("%s: emphasis that nobody wrote", name)
				}
			}
			return ast.WalkContinue, nil
		})
		must(t, err)
	}
}
