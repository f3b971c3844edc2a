package observe

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
)

// suffixes are the ends of the names of a histogram's series.
var suffixes = regexp.MustCompile(`_(bucket|sum|count)$`)

// Every metric that an expression names is exported by a running operator, with the labels that it names.
// Otherwise a typing error would cause an alert that never fires, or an empty panel.
func TestExpressionsNameMetricsThatThereAre(t *testing.T) {
	found := metrics(t)
	expressions := map[string]string{}
	for _, rule := range shipped(t) {
		expressions["alert "+rule.Alert] = rule.Expr.String()
	}
	maps.Copy(expressions, panels(t))
	for where, text := range expressions {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				if err := exported(found, selector); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
			return nil
		})
		if !strings.Contains(text, `job="myweb-operator-metrics"`) {
			t.Errorf("%s: it would take in operators of others, which have the same metrics", where)
		}
	}
}

// exported returns an error unless a selector's metric is there with the selector's labels.
func exported(found scraped, selector *parser.VectorSelector) error {
	if selector.Name == "up" {
		return nil // Prometheus' own
	}
	family := found[selector.Name]
	if family == nil {
		family = found[suffixes.ReplaceAllString(selector.Name, "")]
	}
	if family == nil {
		return fmt.Errorf("no operator exports %s", selector.Name)
	}
	has := labelsOf(family)
	for _, matcher := range selector.LabelMatchers {
		if name := matcher.Name; !has[name] && !slices.Contains([]string{"__name__", "job", "le"}, name) {
			return fmt.Errorf("%s has no label %s, it has %v", selector.Name, name, slices.Sorted(maps.Keys(has)))
		}
	}
	return nil
}

func labelsOf(family *dto.MetricFamily) map[string]bool {
	has := map[string]bool{}
	for _, m := range family.Metric {
		for _, l := range m.Label {
			has[l.GetName()] = true
		}
	}
	return has
}

// row is a line of the page's tables: | `name` | type | labels | meaning |.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| (.*?) \\| .+ \\|$")

// The page describes each metric that the operator exports, and no other.
func TestThePageNamesAllMetrics(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		documented[m[1]] = strings.TrimSpace(m[2] + " " + strings.ReplaceAll(m[3], "`", ""))
	}
	there := map[string]string{}
	for name, family := range metrics(t) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // of every Go program
		}
		labels := strings.Join(slices.Sorted(maps.Keys(labelsOf(family))), ", ")
		there[name] = strings.TrimSpace(strings.ToLower(family.GetType().String()) + " " + labels)
	}
	if diff := cmp.Diff(there, documented); diff != "" {
		t.Errorf("observe/README.md (-there +documented):\n%s", diff)
	}
}
