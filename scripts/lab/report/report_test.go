package report

import (
	"bytes"
	"regexp"
	"slices"
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

	"example.com/operator-workshop/scripts/lab/benchmark"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// reports are the cases that the page must handle.
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

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			b.WriteString(d.Data)
		}
	}
	return strings.ReplaceAll(b.String(), space, " ")
}

// TestNothingIsLost checks that every outcome, with all its texts, is on the page.
func TestNothingIsLost(t *testing.T) {
	r := fixture("03", "04", "mine")
	page := shown(t, r.Markdown())
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
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	for verdict, word := range map[suite.Verdict]string{
		suite.Failed: "failed, 1 of 3", suite.Passed: "passed, 1 skipped"} {
		if n := strings.Count(page, word); n < 2 {
			t.Errorf("the page says %q %d times for groups that %s", word, n, verdict)
		}
	}
}

// TestMatrix checks that each cell of the matrix has the outcome of its column and row.
func TestMatrix(t *testing.T) {
	r := fixture("03", "04")
	r.Families[0].Outcomes["03"] = r.Families[0].Outcomes["03"][:3] // an implementation whose run was stopped
	lines := strings.Split(r.Markdown(), "\n")
	for _, want := range []string{
		"| **1: children appear, owned and selected by name and instance** | passed | passed |",
		"| **5: deleted or edited children are restored, additions by others stay** | not run | **failed, 1 of 3** |",
		"| `behaviour/05-check-1` deleted or edited children are restored, additions by others stay, part 2 | not run " +
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
	page := r.Markdown()
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
	if found := regexp.MustCompile(`8\.7[67]|7\.65|9\.88`).FindString(page); found != "" {
		t.Errorf("the page tells the number %s of a ratio that means nothing", found)
	}
}

func TestWhatIsEmptyIsLeftOut(t *testing.T) {
	tests := map[string]struct {
		report  *Report
		want    []string
		without []string
	}{
		"nothing at all": {&Report{}, []string{"- the checks: behaviours, crash points and faults", "- the benchmark"},
			[]string{"| ---", "## Failures", "## Ratios", "## How to repeat it"}},
		"no benchmark": {&Report{Families: fixture("03").Families}, []string{"- the benchmark", "make compare"},
			[]string{"## Requests"}},
		"a family without outcomes": {&Report{Families: []Family{{Name: "faults"}}, Bench: measuredBy([]string{"03"})},
			[]string{"- the checks of faults", "No check failed."}, []string{"## Faults"}},
		"a benchmark of sizes alone, of one of two": {
			&Report{Impls: []Implementation{{"03", ""}, {"04", ""}},
				Bench: &benchmark.Result{Implementations: []benchmark.Measured{
					{Name: "03", Static: benchmark.Static{BinaryBytes: 1 << 20, Written: -1}}}}},
			[]string{"size of the binary | 1.0 MiB", "written | not known", "- sizes of the programs of 04",
				"- memory and processor time\n", "- latency\n"},
			[]string{"## Time and memory", "## Requests", "## Recovery"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			page := tt.report.Markdown()
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
			page := r.Markdown()
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
				case *ast.HTMLBlock, *ast.RawHTML, *ast.Link, *ast.Image, *ast.Emphasis:
					if e, ok := n.(*ast.Emphasis); !ok || e.Level != 2 {
						t.Errorf("%s that nobody wrote", n.Kind())
					}
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
		"1. one\n- two\n--- three":    `1\. one \- two \--- three`,
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
