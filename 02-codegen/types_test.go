package codegen_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
)

// fullMyWeb has a value in every field of spec and status.
func fullMyWeb(name string) *webv1.MyWeb {
	web := newMyWeb(name)
	web.Labels = map[string]string{"tier": "front"}
	web.Spec = webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)), PageContentHTML: new("<h1>Hi</h1>"),
		Replicas: new(int32(2))}
	web.Status = webv1.MyWebStatus{
		Completed: true, NodePort: 30100, ObservedGeneration: 1, ReadyReplicas: 2,
		Selector: "app.kubernetes.io/instance=" + name,
		Conditions: []metav1.Condition{{
			Type: "Available", Status: metav1.ConditionTrue, Reason: "Serving", Message: "2 pods",
			ObservedGeneration: 1, LastTransitionTime: metav1.Unix(0, 0),
		}},
	}
	return web
}

// The API server would prune a field of the types that the CRD does not name.
func TestTheCRDHasEveryFieldOfTheTypes(t *testing.T) {
	webs := newWebs(t)
	want := fullMyWeb("full")
	for _, part := range []reflect.Value{reflect.ValueOf(want.Spec), reflect.ValueOf(want.Status)} {
		for i := range part.NumField() {
			if part.Field(i).IsZero() {
				t.Errorf("fullMyWeb leaves %s empty: nothing would be seen of it here", part.Type().Field(i).Name)
			}
		}
	}
	created := create(t, webs, want.DeepCopy())
	created.Status = want.Status
	got, err := webs.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	testenv.Must(t, err)
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-sent +stored):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-sent +stored):\n%s", diff)
	}
}
