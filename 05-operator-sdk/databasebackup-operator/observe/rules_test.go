// Package observe tests the alerts, the dashboard and the page of an operator's metrics.
package observe

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	"sigs.k8s.io/yaml"
)

// A suite is a file of tests for rules, as promtool reads it.
type suite struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []ruleTest     `json:"tests"`
}

type ruleTest struct {
	Name        string         `json:"name"`
	Interval    model.Duration `json:"interval"`
	InputSeries []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	Alerts []alertTest `json:"alert_rule_test"`
}

type alertTest struct {
	EvalTime  model.Duration `json:"eval_time"`
	Alertname string         `json:"alertname"`
	// Want are the alerts that fire. Without annotations these are not compared.
	Want []firing `json:"exp_alerts"`
}

type firing struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations,omitempty"`
}

func TestEachAlertFiresWhenItShouldAndOnlyThen(t *testing.T) {
	var s suite
	parse(t, "alerts_test.yaml", &s)
	seen := map[string]map[bool]bool{} // by alert: has it fired, has it not
	for _, test := range s.Tests {
		t.Run(test.Name, func(t *testing.T) {
			for name, fired := range test.run(t, s) {
				if seen[name] == nil {
					seen[name] = map[bool]bool{}
				}
				seen[name][fired] = true
			}
		})
	}
	for _, rule := range shipped(t) {
		if got := seen[rule.Alert]; !got[true] || !got[false] {
			t.Errorf("%s: the tests see it fire: %v, and not fire: %v; they must see both", rule.Alert, got[true], got[false])
		}
	}
}

// run evaluates the rules minute by minute over the test's series. For each question of the test, it yields whether the
// alert fired.
func (test ruleTest) run(t *testing.T, s suite) func(yield func(string, bool) bool) {
	t.Helper()
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", test.Interval)
	for _, series := range test.InputSeries {
		fmt.Fprintf(&load, "  %s %s\n", series.Series, series.Values)
	}
	storage := promqltest.LoadedStorage(t, load.String())
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, storage), Appendable: storage, Queryable: storage, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(),
		Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(time.Duration(s.EvaluationInterval), labels.EmptyLabels(), "", nil, false,
		files(s.RuleFiles)...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	asked := slices.Clone(test.Alerts)
	slices.SortStableFunc(asked, func(a, b alertTest) int { return int(a.EvalTime - b.EvalTime) })
	type answer struct {
		name  string
		fired bool
	}
	var answers []answer
	for now := time.Duration(0); len(asked) > 0; now += time.Duration(s.EvaluationInterval) {
		for _, group := range groups {
			group.Eval(t.Context(), time.Unix(0, 0).Add(now).UTC())
		}
		for ; len(asked) > 0 && time.Duration(asked[0].EvalTime) <= now; asked = asked[1:] {
			got := active(t, groups, asked[0].Alertname)
			answers = append(answers, answer{asked[0].Alertname, len(got) > 0})
			compare(t, asked[0], got)
		}
	}
	return func(yield func(string, bool) bool) {
		for _, a := range answers {
			if !yield(a.name, a.fired) {
				return
			}
		}
	}
}

// active are the alerts of a rule that fire, ordered by their labels.
func active(t *testing.T, groups map[string]*rules.Group, name string) (got []firing) {
	t.Helper()
	found := false
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			if err := rule.LastError(); err != nil {
				t.Fatalf("%s: %v", rule.Name(), err)
			}
			if rule.Name() != name {
				continue
			}
			found = true
			for _, alert := range rule.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					got = append(got, firing{alert.Labels.Map(), alert.Annotations.Map()})
				}
			}
		}
	}
	if !found {
		t.Errorf("there is no alert %s", name)
	}
	slices.SortFunc(got, func(a, b firing) int { return strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
	return got
}

func compare(t *testing.T, want alertTest, got []firing) {
	t.Helper()
	for i := range got {
		delete(got[i].Labels, "alertname")
		if i < len(want.Want) && want.Want[i].Annotations == nil {
			got[i].Annotations = nil
		}
	}
	if diff := cmp.Diff(want.Want, got, cmp.Transformer("", func(all []firing) []firing {
		return append([]firing{}, all...)
	})); diff != "" {
		t.Errorf("%s after %s (-want +got):\n%s", want.Alertname, want.EvalTime, diff)
	}
}

// shipped are the rules of the object that the Prometheus operator reads.
func shipped(t *testing.T) (all []monitoringv1.Rule) {
	t.Helper()
	var object monitoringv1.PrometheusRule
	parse(t, "alerts.yaml", &object)
	for _, group := range object.Spec.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func TestThePlainRulesAreThoseOfTheObject(t *testing.T) {
	var object monitoringv1.PrometheusRule
	var plain monitoringv1.PrometheusRuleSpec
	parse(t, "alerts.yaml", &object)
	parse(t, "generated/rules.yaml", &plain)
	if diff := cmp.Diff(object.Spec, plain); diff != "" {
		t.Errorf("run make generate (-object +plain):\n%s", diff)
	}
}

func TestEachAlertSaysWhatItMeans(t *testing.T) {
	for _, rule := range shipped(t) {
		for _, text := range []string{rule.Annotations["summary"], rule.Annotations["description"], rule.Labels["severity"]} {
			if text == "" {
				t.Errorf("%s needs a summary, a description and a severity", rule.Alert)
			}
		}
	}
}

// parse reads a file of the folder with the alerts. A field that the type does not have is an error.
func parse(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(data), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func files(names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}
