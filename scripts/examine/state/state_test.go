package state

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var masked = regexp.MustCompile(`\.(uid|resourceVersion|clusterIP)\b`).MatchString

func objectAt(port, page string) State {
	s := State{}
	s.Add("services", map[string]any{
		"metadata": map[string]any{"name": "web", "uid": "1" + port, "resourceVersion": port,
			"labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"clusterIP": "10.0.0." + port,
			"ports": []any{map[string]any{"name": "http", "nodePort": port}}},
	}, masked)
	s.Add("configmaps", map[string]any{"data": map[string]any{"index.html": page}}, masked)
	return s
}

func TestStatesAreCompared(t *testing.T) {
	want, varying := Common([]State{objectAt("1", "hello"), objectAt("2", "hello"), objectAt("3", "hello")})
	if lines := Differences(objectAt("4", "hello"), want, varying); len(lines) > 0 {
		t.Errorf("what differs between undisturbed runs was compared: %v", lines)
	}
	if lines := Differences(objectAt("5", "bye"), want, varying); !slices.Equal(lines,
		[]string{`configmaps.data.index.html is "bye"; undisturbed it is "hello"`}) {
		t.Errorf("differences: %v", lines)
	}
}

func TestOrderOfNamedItemsIsFree(t *testing.T) {
	ready, done := map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Done", "status": "False"}
	a, b := State{}, State{}
	a.Add("greetings", map[string]any{"conditions": []any{ready, done}}, masked)
	b.Add("greetings", map[string]any{"conditions": []any{done, ready}}, masked)
	if lines := Differences(a, b, nil); len(lines) > 0 {
		t.Errorf("differences: %v", lines)
	}
}

func TestDifferences(t *testing.T) {
	equal, varying := Common([]State{{"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4"}})
	if diff := cmp.Diff(State{"a": "1"}, equal); diff != "" {
		t.Error(diff)
	}
	if lines := Differences(State{"a": "1", "b": "2"}, State{"a": "1", "b": "4", "c": "3"}, varying); len(lines) > 0 {
		t.Errorf("values that vary are compared: %v", lines)
	}
	for name, test := range map[string]struct {
		got  State
		want []string
	}{
		"as undisturbed":   {State{"a": "1", "b": "9", "c": "9"}, nil},
		"a missing value":  {State{"b": "9"}, []string{`a is missing; undisturbed it is "1"`}},
		"another value":    {State{"a": "2"}, []string{`a is "2"; undisturbed it is "1"`}},
		"a value too many": {State{"a": "1", "d": "1"}, []string{`d is "1"; undisturbed it does not exist`}},
	} {
		if diff := cmp.Diff(test.want, Differences(test.got, equal, varying)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
