package codegen_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
			Type: webv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: webv1.ReasonServing, Message: "2 pods",
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
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-sent +stored):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-sent +stored):\n%s", diff)
	}
}

func TestADeepCopySharesNothing(t *testing.T) {
	original := fullMyWeb("shop")
	copied := original.DeepCopyObject().(*webv1.MyWeb)
	if diff := cmp.Diff(original, copied); diff != "" {
		t.Fatalf("copy (-original +copy):\n%s", diff)
	}

	copied.Labels["tier"] = "back"
	*copied.Spec.NodePortNumber, *copied.Spec.Replicas = 1, 1
	*copied.Spec.PageContentHTML = "changed"
	copied.Status.Conditions[0].Message = "changed"

	if diff := cmp.Diff(fullMyWeb("shop"), original); diff != "" {
		t.Errorf("a change of the copy reached the original (-before +after):\n%s", diff)
	}
}

func TestASchemeLearnsTheKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := webv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]runtime.Object{"MyWeb": &webv1.MyWeb{}, "MyWebList": &webv1.MyWebList{}} {
		got, err := scheme.New(webv1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Errorf("new %s: %v", kind, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}
