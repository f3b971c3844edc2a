package crash

import (
	"slices"
	"strings"
	"testing"
)

func objectAt(port, page string) state {
	s := state{}
	s.add("services", map[string]any{
		"metadata": map[string]any{"name": "web", "uid": "1" + port, "resourceVersion": port,
			"labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"clusterIP": "10.0.0." + port,
			"ports": []any{map[string]any{"name": "http", "nodePort": port}}},
	})
	s.add("configmaps", map[string]any{"data": map[string]any{"index.html": page}})
	return s
}

func TestStatesAreCompared(t *testing.T) {
	want, varying := common([]state{objectAt("1", "hello"), objectAt("2", "hello"), objectAt("3", "hello")})
	if lines := differences(objectAt("4", "hello"), want, varying); len(lines) > 0 {
		t.Errorf("what differs between undisturbed runs was compared: %v", lines)
	}
	if lines := differences(objectAt("5", "bye"), want, varying); !slices.Equal(lines,
		[]string{"configmaps.data.index.html is bye, undisturbed it is hello"}) {
		t.Errorf("differences: %v", lines)
	}
	missing := objectAt("6", "hello")
	delete(missing, "services.metadata.labels.a")
	if lines := differences(missing, want, varying); len(lines) != 1 || !strings.Contains(lines[0], "is missing") {
		t.Errorf("differences: %v", lines)
	}
	more := objectAt("7", "hello")
	more["services.metadata.labels.c"] = "d"
	if lines := differences(more, want, varying); len(lines) != 1 ||
		!strings.Contains(lines[0], "undisturbed it is not there") {
		t.Errorf("differences: %v", lines)
	}
}

func TestOrderOfNamedItemsIsFree(t *testing.T) {
	ready, done := map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Done", "status": "False"}
	a, b := state{}, state{}
	a.add("mywebs", map[string]any{"conditions": []any{ready, done}})
	b.add("mywebs", map[string]any{"conditions": []any{done, ready}})
	if lines := differences(a, b, nil); len(lines) > 0 {
		t.Errorf("differences: %v", lines)
	}
}

func TestSchedules(t *testing.T) {
	five := &path{name: "creation", keys: []key{{"apply", "configmaps", 1}, {"apply", "deployments.apps", 1},
		{"apply", "services", 1}, {"update", "mywebs/status", 1}, {"update", "mywebs/status", 2}}}
	checks := five.sequences()
	if len(checks) != 32 {
		t.Errorf("%d crash sequences of five writes, want 32", len(checks))
	}
	seen := map[string]bool{}
	for _, c := range checks {
		seen[c.ID] = true
	}
	if len(seen) != 32 || !seen["crash/creation-01010"] {
		t.Errorf("crash sequences: %v", seen)
	}
	if len(starts(five)) != 16 {
		t.Errorf("%d start states, want 16", len(starts(five)))
	}
	for range 3 { // eight writes make 256 subsets: the single ones, the pairs and the empty one are tried
		five.keys = append(five.keys, key{"apply", "secrets", len(five.keys)})
	}
	if n := len(five.sequences()); n != 1+8+28 {
		t.Errorf("%d crash sequences of eight writes, want 37", n)
	}
	if _, err := Replay(checks, "crash/creation-2"); err == nil ||
		!strings.Contains(err.Error(), "there are such as crash/creation-11111") {
		t.Errorf("a crash sequence that is not there: %v", err)
	}
	if found, err := Replay(checks, "crash/creation-01010"); err != nil || len(found) != 1 {
		t.Errorf("replay: %v, %v", found, err)
	}
}
