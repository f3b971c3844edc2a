package observe

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
)

// folder contains the alerts, dashboardFile the dashboard.
const (
	folder        = "../config/prometheus"
	dashboardFile = "../config/grafana/dashboard.json"
)

// row is a line of the page's table: | `name` | type | labels | meaning |.
var row = regexp.MustCompile("(?m)^\\| `(databasebackup_[a-z_]+)` \\| [a-z]+ \\| ([a-z, ]+) \\| .+ \\|$")

// metrics returns the metrics on the page, with their labels. TestAScrapeHasTheFiguresOfABackup, in
// ../internal/controller, compares the page with the metrics of the operator.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, r := range row.FindAllStringSubmatch(string(data), -1) {
		all[r[1]] = append(strings.Split(r[2], ", "), "__name__")
	}
	return all
}

// A typing error in the name of a metric or a label would cause an alert that never fires, or an empty panel.
func TestExpressionsNameMetricsThatThereAre(t *testing.T) {
	all := metrics(t)
	all["up"] = []string{"__name__", "job"} // Prometheus' own
	expressions := panels(t)
	for _, rule := range shipped(t) {
		expressions["alert "+rule.Alert] = rule.Expr.String()
	}
	unused := maps.Clone(all)
	for where, text := range expressions {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			delete(unused, selector.Name)
			for _, matcher := range selector.LabelMatchers {
				if !slices.Contains(all[selector.Name], matcher.Name) {
					t.Errorf("%s: the operator has no metric %s with a label %s", where, selector.Name, matcher.Name)
				}
			}
			return nil
		})
	}
	for name := range unused {
		t.Errorf("neither an alert nor the dashboard uses %s", name)
	}
}

// The metrics have the label namespace, and so has each target of Prometheus. Without honorLabels Prometheus keeps the
// target's label, and renames the metric's label to exported_namespace: no alert would name a DatabaseBackup.
func TestTheMonitorKeepsTheNamespaceOfADatabaseBackup(t *testing.T) {
	var monitor monitoringv1.ServiceMonitor
	parse(t, "monitor.yaml", &monitor)
	for _, endpoint := range monitor.Spec.Endpoints {
		if !endpoint.HonorLabels {
			t.Error("monitor.yaml needs honorLabels: true")
		}
	}
}
