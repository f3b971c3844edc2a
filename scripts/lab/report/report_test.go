package report

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
	"gonum.org/v1/plot"

	"example.com/operator-workshop/scripts/lab/benchmark"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func htmlOf(t *testing.T, r *Report) string { t.Helper(); return written(t, r.WriteHTML) }

func markdownOf(t *testing.T, r *Report) string { t.Helper(); return written(t, r.WriteMarkdown) }

// reports are what the pages must cope with.
func reports() map[string]*Report {
	without := fixture("03", "04")
	without.Bench = nil
	half := fixture("03", "04")
	half.Bench.Implementations = half.Bench.Implementations[:1]
	half.Bench.Implementations[0].Latency = nil
	half.Bench.Comparisons = nil
	tiny := fixture("03")
	m := &tiny.Bench.Implementations[0]
	m.Curve, m.Memory = m.Curve[:1], m.Memory[:1]
	m.Latency = &benchmark.Latency{Rate: 1, Samples: []time.Duration{1, time.Hour}, P50: 1}
	m.Counts[0].Objects = 0
	return map[string]*Report{
		"two implementations":         fixture("03", "04"),
		"a reader's own beside them":  fixture("03", "04", "mine"),
		"no benchmark":                without,
		"half a benchmark":            half,
		"very few measurements":       tiny,
		"nothing at all":              {},
		"names that the list has not": {Families: fixture("03", "04").Families, Bench: fixture("03", "04").Bench},
	}
}

func TestHTMLIsWholeAndAlone(t *testing.T) {
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			page := htmlOf(t, r)
			if len(page) > 500_000 {
				t.Errorf("the page has %d bytes", len(page))
			}
			for _, bad := range []string{"url(", "@import", "http://", "https://", "NaN", "Inf", "#0A0A0A", "ZgotmplZ"} {
				if strings.Contains(page, bad) {
					t.Errorf("the page contains %q", bad)
				}
			}
			if left := regexp.MustCompile(`#0[12]\d\dAA`).FindString(page); left != "" {
				t.Errorf("the colour %s is none of the page's", left)
			}
			balanced(t, page)
			doc, err := html.Parse(strings.NewReader(page))
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for n := range doc.Descendants() {
				if id := attr(n, "id"); id != "" {
					if ids[id] {
						t.Errorf("two elements are called %q", id)
					}
					ids[id] = true
				}
			}
			for n := range doc.Descendants() {
				if n.Type == html.ElementNode {
					checkElement(t, n, ids)
				}
			}
		})
	}
}

func checkElement(t *testing.T, n *html.Node, ids map[string]bool) {
	switch n.Data {
	case "script", "link", "img", "iframe", "object", "embed", "base":
		t.Errorf("the page has a <%s>", n.Data)
	case "html":
		if attr(n, "lang") != "en" {
			t.Error("the page does not tell its language")
		}
	case "th":
		if attr(n, "scope") == "" {
			t.Errorf("the head %q has no scope", textOf(n))
		}
	case "svg":
		if attr(n, "aria-hidden") == "" && !ids[attr(n, "aria-labelledby")] {
			t.Error("a drawing has no title")
		}
	case "table":
		rows, columns := 0, 0
		for tr := range n.Descendants() {
			if tr.Data != "tr" {
				continue
			}
			cells := 0
			for c := range tr.ChildNodes() {
				if c.Type == html.ElementNode {
					cells++
				}
			}
			if rows++; columns == 0 {
				columns = cells
			}
			if cells != columns {
				t.Errorf("a row has %d cells, the head has %d: %s", cells, columns, textOf(tr))
			}
		}
		if rows < 2 {
			t.Errorf("a table without rows: %s", textOf(n))
		}
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && !ids[strings.TrimPrefix(a.Val, "#")] {
			t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
		}
	}
}

// balanced checks that every element is closed: the parser would fix it without a word.
func balanced(t *testing.T, page string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		name, _ := z.TagName()
		switch {
		case kind == html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %q", open)
			}
			return
		case kind == html.StartTagToken && string(name) != "meta":
			open = append(open, string(name))
		case kind == html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> while open are %q", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			b.WriteString(d.Data)
		}
	}
	return strings.ReplaceAll(b.String(), space, " ")
}

// Every outcome and every word about it is on both pages.
func TestNothingIsLost(t *testing.T) {
	r := fixture("03", "04", "mine")
	doc, err := html.Parse(strings.NewReader(htmlOf(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"HTML": textOf(doc), "Markdown": shown(t, markdownOf(t, r))}
	want := append([]string{"03 (client-go by hand)", "mine (your own)", "4 May 2026 at 10:12 UTC", "took 18 min",
		r.Commit, "They need Go"}, r.Commands...)
	want = append(append(append(want, r.Machine...), r.Versions...), clean(r.Bench.Notes[1]))
	for _, f := range r.Families {
		want = append(want, f.About)
		for _, g := range f.Groups {
			want = append(want, g.ID+": "+g.Title)
		}
		for _, outcomes := range f.Outcomes {
			for _, o := range outcomes {
				want = append(want, o.Check, o.Title)
				for _, line := range append(strings.Split(o.Reason, "\n"), o.Evidence...) {
					want = append(want, clean(line))
				}
			}
		}
	}
	for name, page := range pages {
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
	for name, page := range map[string]string{"HTML": pages["HTML"], "Markdown": markdownOf(t, r)} {
		for verdict, word := range map[suite.Verdict]string{
			suite.Failed: "failed, 1 of 3", suite.Passed: "passed, 1 skipped"} {
			if n := strings.Count(page, word); n < 2 {
				t.Errorf("%s says %q %d times for groups that %s", name, word, n, verdict)
			}
		}
	}
}

// Each cell of the matrix tells the outcome of its own column and row.
func TestMatrix(t *testing.T) {
	r := fixture("03", "04")
	r.Families[0].Outcomes["03"] = r.Families[0].Outcomes["03"][:3] // an implementation that was stopped
	lines := strings.Split(markdownOf(t, r), "\n")
	for _, want := range []string{
		"| **1: children appear, owned and selected by name and instance** | passed | passed |",
		"| **5: what is deleted or edited comes back, what others add stays** | not run | **failed, 1 of 3** |",
		"| `behaviour/05-check-1` what is deleted or edited comes back, what others add stays, part 2 | not run " +
			"| **failed** |",
		"| `behaviour/08-check-2` a rollout that fails is reported, and the old pods too, part 3 | not run | skipped |",
		"| Behaviours | 3 passed, 0 failed, 0 skipped | **21 passed, 2 failed, 1 skipped** |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line is\n%s", want)
		}
	}
}

func TestNumbers(t *testing.T) {
	r := fixture("03", "04")
	r.Bench.Implementations[0].Latency.P99 = 0
	page := markdownOf(t, r)
	for _, want := range []string{
		"| update mywebs/status | 1.97 (197 in all) | 1.98 (198 in all) |",
		"| apply configmaps | 1 | 1 |",
		"| syncs | not reported | not reported |",
		"| converge 100, 04 ÷ 03 | 10 | 1.31 | 1.25 to 1.38 | 1.01 (0.98 to 1.03) | 04 takes 1.31 times as long as 03. |",
		"| update 100, 04 ÷ 03 | 10 | 1.01 | 0.97 to 1.06 | 1.01 (0.98 to 1.03) | No difference can be seen: the " +
			"interval holds 1. |",
		"| recovery, 04 ÷ 03 | 10 | too noisy | – | 1.11 (0.91 to 1.24) | The machine is too noisy to say: 04 against " +
			"itself left 0.95 to 1.05. |",
		"| 03 | 1,000 | 59.1 MiB | 38 | 9 s | 31 s |",
		"| goroutines in steady state | 38 (with 5,000 MyWebs) | 49 (with 5,000 MyWebs) |",
		"needs 1,000 samples",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	doc, err := html.Parse(strings.NewReader(htmlOf(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string]string{"HTML": textOf(doc), "Markdown": page} {
		if found := regexp.MustCompile(`8\.7[67]|7\.65|9\.88`).FindString(page); found != "" {
			t.Errorf("%s tells the number %s of a ratio that means nothing", name, found)
		}
	}
}

func TestWhatIsEmptyIsLeftOut(t *testing.T) {
	tests := map[string]struct {
		report  *Report
		want    []string
		without []string
	}{
		"nothing at all": {&Report{}, []string{"- the checks: behaviours, crash points and faults", "- the benchmark"},
			[]string{"| ---", "compare.html", "## What failed", "## Ratios", "## How to repeat it"}},
		"no benchmark": {&Report{Families: fixture("03").Families}, []string{"- the benchmark", "make compare"},
			[]string{"## Requests", "compare.html"}},
		"a family without outcomes": {&Report{Families: []Family{{Name: "faults"}}, Bench: measuredBy([]string{"03"})},
			[]string{"- the checks of faults", "No check failed."}, []string{"## Faults"}},
		"a benchmark of sizes alone, of one of two": {
			&Report{Impls: []Implementation{{"03", ""}, {"04", ""}},
				Bench: &benchmark.Result{Implementations: []benchmark.Measured{
					{Name: "03", Static: benchmark.Static{BinaryBytes: 1 << 20, Written: -1}}}}},
			[]string{"size of the binary | 1.0 MiB", "written | not known", "- sizes of the programs of 04",
				"- memory and processor time\n", "- latency\n"},
			[]string{"## Time and memory", "## Requests", "## Recovery", "compare.html"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			page := markdownOf(t, tt.report)
			for _, w := range tt.want {
				if !strings.Contains(page, w) {
					t.Errorf("the page lacks %q:\n%s", w, page)
				}
			}
			for _, w := range tt.without {
				if strings.Contains(page, w) {
					t.Errorf("the page has %q", w)
				}
			}
			if strings.Contains(htmlOf(t, tt.report), "<svg") != strings.Contains(page, "compare.html") {
				t.Error("one page has plots, the other says nothing of them")
			}
		})
	}
}

// parsed is the tree of a page of Markdown.
func parsed(page string) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(page)))
}

// shown is the text that a reader of the page sees.
func shown(t *testing.T, page string) string {
	t.Helper()
	var out bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(page), &out); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return textOf(doc)
}

func TestMarkdownIsSound(t *testing.T) {
	pipe := regexp.MustCompile(`(^|[^\\])(\\\\)*\|`)
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			page := markdownOf(t, r)
			columns, want := 0, 0
			for line := range strings.Lines(page) {
				if !strings.HasPrefix(line, "| ") {
					columns = 0
					continue
				}
				n := len(pipe.FindAllString(line, -1))
				if columns == 0 {
					columns = n
					want++
				}
				if n != columns {
					t.Errorf("%d pipes, the head has %d: %s", n, columns, line)
				}
			}
			tables := 0
			err := ast.Walk(parsed(page), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				switch n := n.(type) {
				case *east.Table:
					if entering {
						tables++
					}
					if n.ChildCount() < 2 {
						t.Error("a table without rows")
					}
				case *ast.HTMLBlock, *ast.Link, *ast.Image, *ast.Emphasis:
					if e, ok := n.(*ast.Emphasis); !ok || e.Level != 2 {
						t.Errorf("%s that nobody wrote", n.Kind())
					}
				case *ast.RawHTML:
					return ast.WalkSkipChildren, nil // a line's end in a cell
				}
				return ast.WalkContinue, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if tables != want {
				t.Errorf("the page has %d tables, %d are written", tables, want)
			}
		})
	}
}

func TestInCell(t *testing.T) {
	for in, want := range map[string]string{
		"plain words, 1.5 and 10,000": "plain words, 1.5 and 10,000",
		"a|b `c` *d* <e> &f; \\":      "a\\|b \\`c\\` \\*d\\* \\<e\\> \\&f; \\\\",
		"1. one\n- two\n--- three":    `1\. one<br>\- two<br>\--- three`,
		" \x1b[31mred\x1b[0m\x00 \n":  "red\uFFFD",
		"broken \xff":                 "broken \uFFFD",
	} {
		if diff := cmp.Diff(want, inCell(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestFormats(t *testing.T) {
	for got, want := range map[string]string{
		number(-1234567): "-1,234,567", number(999): "999", number(int64(-100)): "-100",
		digits(0): "0", digits(0.01234): "0.0123", digits(1.999): "2", digits(1234.5): "1234", digits(0.5): "0.5",
		duration(0): "0 s", duration(1500 * time.Microsecond): "1.5 ms", duration(999600 * time.Microsecond): "1 s",
		duration(61 * time.Second): "61 s", duration(1062 * time.Second): "18 min",
		per(300, 100): "3", per(1, 100): "0.01 (1 in all)", per(7, 0): "7 in all",
		count(1, "check"): "1 check", and([]string{"a", "b", "c"}): "a, b and c", and(nil): "",
		fenced("sh", []string{"````"}): "`````sh\n````\n`````\n", code("a`b|c"): "``a`b\\|c``",
	} {
		if got := strings.ReplaceAll(got, space, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(from, to float64, of interface {
		Ticks(low, high float64) []plot.Tick
	}) (all []string) {
		for _, at := range of.Ticks(from, to) {
			all = append(all, at.Label)
		}
		return all
	}
	for name, tt := range map[string]struct{ got, want []string }{
		"thousands":        {labels(0, 5000, linear{}), []string{"0", "1,000", "2,000", "3,000", "4,000", "5,000"}},
		"parts":            {labels(0, 0.5, linear{}), []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		"two powers":       {labels(7, 300, logTicks{}), []string{"10", "20", "50", "100", "200"}},
		"many powers":      {labels(0.5, 20000, logTicks{}), []string{"1", "10", "100", "1,000", "10,000"}},
		"a span of naught": {labels(1, 1, linear{}), []string{"1"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The colours of the page can be read, light and dark and on paper.
func TestContrast(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageTemplate, -1)
	if len(schemes) != 3 {
		t.Fatalf("%d schemes of colours", len(schemes))
	}
	for _, scheme := range schemes {
		c := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(scheme[1], -1) {
			if c[m[1]] = m[2]; len(m[2]) == 3 {
				c[m[1]] = regexp.MustCompile(`.`).ReplaceAllString(m[2], "$0$0")
			}
		}
		check := func(least float64, front, back string) {
			if ratio := contrast(t, c[front], c[back]); ratio < least {
				t.Errorf("--%s on --%s has a contrast of %.2f in%s", front, back, ratio, scheme[1])
			}
		}
		for _, back := range []string{"paper", "sheet"} {
			for _, front := range []string{"ink", "muted", "accent"} {
				check(4.5, front, back)
			}
			for style := range styles {
				check(4.5, "s0"+strconv.Itoa(style+1), back)
			}
		}
		for _, v := range []string{"pass", "fail", "skip"} {
			check(4.5, v, v+"-bg")
		}
	}
}

// contrast of two colours as WCAG 2 defines it.
func contrast(t *testing.T, a, b string) float64 {
	light := func(s string) (sum float64) {
		v, err := strconv.ParseUint(s, 16, 32)
		if err != nil {
			t.Fatalf("colour %q: %v", s, err)
		}
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			part := float64(v>>(16-8*i)&0xFF) / 255
			if part <= 0.04045 {
				part /= 12.92
			} else {
				part = math.Pow((part+0.055)/1.055, 2.4)
			}
			sum += weight * part
		}
		return sum
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
