package codegen_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	webv1ac "example.com/operator-workshop/02-codegen/pkg/generated/applyconfiguration/myweb/v1"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// tiers stores four MyWebs, each with a label.
func tiers(t *testing.T, webs typedv1.MyWebInterface) {
	t.Helper()
	for name, tier := range map[string]string{"a": "front", "b": "front", "c": "back", "d": "test"} {
		web := newMyWeb(name)
		web.Labels = map[string]string{"tier": tier}
		create(t, webs, web)
	}
}

func TestApplyOwnsWhatItSends(t *testing.T) {
	webs := newWebs(t)
	apply := func(manager string, force bool, spec *webv1ac.MyWebSpecApplyConfiguration) (*webv1.MyWeb, error) {
		return webs.Apply(t.Context(), webv1ac.MyWeb("shop", "").WithSpec(spec),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	must := func(web *webv1.MyWeb, err error) webv1.MyWebSpec {
		t.Helper()
		testenv.Must(t, err)
		return web.Spec
	}

	must(apply("owner", false, webv1ac.MyWebSpec().WithImage("nginx").WithPageContentHTML("<h1>Hi</h1>")))
	_, err := apply("editor", false, webv1ac.MyWebSpec().WithImage("httpd"))
	if !apierrors.IsConflict(err) {
		t.Fatalf("apply over an owned field: %v, want a conflict", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 {
		t.Fatalf("the conflict has no cause: %v", err)
	}
	cause := status.Status().Details.Causes[0]
	if cause.Type != metav1.CauseTypeFieldManagerConflict || cause.Field != ".spec.image" ||
		!strings.Contains(cause.Message, `"owner"`) {
		t.Errorf("cause = %+v, want the field .spec.image and its manager", cause)
	}

	got := must(apply("editor", false, webv1ac.MyWebSpec().WithImage("nginx"))) // the same value is not a conflict
	if diff := cmp.Diff(webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("<h1>Hi</h1>"), Replicas: new(int32(1))},
		got); diff != "" {
		t.Errorf("two owners of one value (-want +got):\n%s", diff)
	}
	got = must(apply("editor", true, webv1ac.MyWebSpec().WithImage("httpd")))
	if diff := cmp.Diff(webv1.MyWebSpec{Image: "httpd", PageContentHTML: new("<h1>Hi</h1>"), Replicas: new(int32(1))},
		got); diff != "" {
		t.Errorf("after force (-want +got):\n%s", diff)
	}
	if _, err := apply("owner", false, webv1ac.MyWebSpec().WithImage("nginx")); !apierrors.IsConflict(err) {
		t.Errorf("the former owner applies again: %v, want a conflict", err)
	}
	got = must(apply("owner", false, webv1ac.MyWebSpec())) // sends no page any more
	if diff := cmp.Diff(webv1.MyWebSpec{Image: "httpd", Replicas: new(int32(1))}, got); diff != "" {
		t.Errorf("after giving up all fields (-want +got):\n%s", diff)
	}
}

// The list of conditions is a map by type: each manager owns its own items.
func TestApplyStatusMergesConditionsByType(t *testing.T) {
	webs := newWebs(t)
	create(t, webs, newMyWeb("shop"))
	apply := func(manager, conditionType string, status metav1.ConditionStatus) {
		t.Helper()
		condition := metav1ac.Condition().WithType(conditionType).WithStatus(status).WithReason("AsExpected").
			WithMessage("").WithLastTransitionTime(metav1.NewTime(time.Unix(0, 0)))
		_, err := webs.ApplyStatus(t.Context(),
			webv1ac.MyWeb("shop", "").WithStatus(webv1ac.MyWebStatus().WithConditions(condition)),
			metav1.ApplyOptions{FieldManager: manager})
		testenv.Must(t, err)
	}

	apply("one", "Available", metav1.ConditionTrue)
	apply("another", "Degraded", metav1.ConditionFalse)
	apply("one", "Available", metav1.ConditionFalse)

	got := map[string]metav1.ConditionStatus{}
	for _, condition := range get(t, webs, "shop").Status.Conditions {
		got[condition.Type] = condition.Status
	}
	want := map[string]metav1.ConditionStatus{
		"Available": metav1.ConditionFalse, "Degraded": metav1.ConditionFalse}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
