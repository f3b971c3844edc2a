package crd_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

// observed is a status as an operator will write it.
func observed() map[string]any {
	return map[string]any{
		"completed":          true,
		"observedGeneration": int64(1),
		"readyReplicas":      int64(2),
		"nodePort":           int64(30100),
		"selector":           "app.kubernetes.io/name=myweb,app.kubernetes.io/instance=site",
		"conditions":         []any{condition("Available")},
	}
}

func condition(conditionType string) map[string]any {
	return map[string]any{
		"type":               conditionType,
		"status":             "True",
		"reason":             "MinimumReplicasAvailable",
		"message":            "",
		"observedGeneration": int64(1),
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}
}

func TestOnlySpecRaisesTheGeneration(t *testing.T) {
	c := newClient(t, server)
	create(t, c, newMyWeb("site", map[string]any{"image": "nginx"}))
	for _, step := range []struct {
		name  string
		write func(web *unstructured.Unstructured) error
		want  int64
	}{
		{"status", func(web *unstructured.Unstructured) error {
			return c.Status().Patch(t.Context(), web, mergePatch(`{"status":{"completed":true}}`))
		}, 1},
		{"a label", func(web *unstructured.Unstructured) error {
			return c.Patch(t.Context(), web, mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))
		}, 1},
		{"spec", func(web *unstructured.Unstructured) error {
			return c.Patch(t.Context(), web, mergePatch(`{"spec":{"image":"httpd"}}`))
		}, 2},
	} {
		before := get(t, c, "site").GetResourceVersion()
		if err := step.write(newMyWeb("site", nil)); err != nil {
			t.Fatalf("write %s: %v", step.name, err)
		}
		after := get(t, c, "site")
		if after.GetResourceVersion() == before {
			t.Errorf("writing %s changed nothing", step.name)
		}
		if got := after.GetGeneration(); got != step.want {
			t.Errorf("after writing %s the generation is %d, want %d", step.name, got, step.want)
		}
	}
}

func TestStatusIsCheckedToo(t *testing.T) {
	c := newClient(t, server)
	create(t, c, newMyWeb("site", map[string]any{"image": "nginx"}))
	without := func(key string) map[string]any {
		cond := condition("Available")
		delete(cond, key)
		return cond
	}
	for name, test := range map[string]struct {
		key             string
		value           any
		field, sentence string
	}{
		"one type of condition twice": {
			"conditions", []any{condition("Available"), condition("Available")}, "status.conditions[1]", "Duplicate value"},
		"a condition without a reason": {
			"conditions", []any{without("reason")}, "status.conditions[0].reason", "Required value"},
		"a condition that is maybe true": {"conditions", []any{map[string]any{"status": "Maybe"}},
			"status.conditions[0].status", `supported values: "True", "False", "Unknown"`},
		"completed as text":                 {"completed", "yes", "status.completed", "must be of type boolean"},
		"a number as text":                  {"readyReplicas", "two", "status.readyReplicas", "must be of type integer"},
		"a field that status does not have": {"phase", "Running", "status.phase", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			web := get(t, c, "site")
			web.Object["status"] = map[string]any{test.key: test.value}
			if err := checkRefused(c.Status().Update(t.Context(), web), test.field, test.sentence); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestScale(t *testing.T) {
	c := newClient(t, server)
	web := newMyWeb("site", map[string]any{"image": "nginx", "nodePortNumber": int64(30100)})
	create(t, c, web)
	web.Object["status"] = observed()
	testenv.Must(t, c.Status().Update(t.Context(), web))

	scale := newScale()
	testenv.Must(t, c.SubResource("scale").Get(t.Context(), web, scale))
	want := map[string]any{
		"spec":   map[string]any{"replicas": int64(1)},
		"status": map[string]any{"replicas": int64(2), "selector": observed()["selector"]},
	}
	got := map[string]any{"spec": scale.Object["spec"], "status": scale.Object["status"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}

	for _, replicas := range []int32{0, 10} {
		if err := setScale(t, c, replicas); err != nil {
			t.Errorf("scale to %d: %v", replicas, err)
		}
		want := map[string]any{"image": "nginx", "nodePortNumber": int64(30100), "replicas": int64(replicas)}
		if diff := cmp.Diff(want, get(t, c, "site").Object["spec"]); diff != "" {
			t.Errorf("spec after scaling to %d (-want +got):\n%s", replicas, diff)
		}
	}
	if err := checkRefused(setScale(t, c, 11), "spec.replicas", "should be less than or equal to 10"); err != nil {
		t.Error(err)
	}
	if err := checkRefused(setScale(t, c, -1), "spec.replicas", "should be greater than or equal to 0"); err != nil {
		t.Error(err)
	}
}

func newScale() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
}

// setScale does what kubectl scale does.
func setScale(t *testing.T, c client.Client, replicas int32) error {
	t.Helper()
	patch := mergePatch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	return c.SubResource("scale").Patch(t.Context(), newMyWeb("site", nil), patch,
		client.WithSubResourceBody(newScale()))
}
