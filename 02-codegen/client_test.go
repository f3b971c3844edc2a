package codegen_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	webv1ac "example.com/operator-workshop/02-codegen/pkg/generated/applyconfiguration/myweb/v1"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

func TestCreateGetUpdatePatchDelete(t *testing.T) {
	webs := newWebs(t)

	created := create(t, webs, newMyWeb("shop"))
	if diff := cmp.Diff(created, get(t, webs, "shop")); diff != "" {
		t.Errorf("what get reads differs from what create returned (-create +get):\n%s", diff)
	}
	if created.Generation != 1 || created.UID == "" || *created.Spec.Replicas != 1 {
		t.Errorf("generation %d, UID %q, replicas %d: the API server fills them in", created.Generation, created.UID,
			*created.Spec.Replicas)
	}

	changed := created.DeepCopy()
	changed.Spec.Image = "httpd"
	if _, err := webs.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	created.Spec.Image = "caddy" // created is stale by now
	if _, err := webs.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of a stale object: %v, want a conflict", err)
	}

	patched, err := webs.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`),
		metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := webv1.MyWebSpec{Image: "httpd", Replicas: new(int32(3))}
	if diff := cmp.Diff(want, patched.Spec); diff != "" {
		t.Errorf("spec after update and patch (-want +got):\n%s", diff)
	}
	if patched.Generation != 3 {
		t.Errorf("generation %d after two changes of the spec, want 3", patched.Generation)
	}

	if err := webs.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := webs.Get(t.Context(), "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v, want not found", err)
	}
}

// tiers stores four MyWebs, each with a label.
func tiers(t *testing.T, webs typedv1.MyWebInterface) {
	t.Helper()
	for name, tier := range map[string]string{"a": "front", "b": "front", "c": "back", "d": "test"} {
		web := newMyWeb(name)
		web.Labels = map[string]string{"tier": tier}
		create(t, webs, web)
	}
}

// names returns the names of the list's items, in the order of the list.
func names(list *webv1.MyWebList) []string {
	names := []string{}
	for _, web := range list.Items {
		names = append(names, web.Name)
	}
	return names
}

func TestListSelects(t *testing.T) {
	webs := newWebs(t)
	tiers(t, webs)
	for name, test := range map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"everything":      {metav1.ListOptions{}, []string{"a", "b", "c", "d"}},
		"a label's value": {metav1.ListOptions{LabelSelector: "tier=front"}, []string{"a", "b"}},
		"a set of values": {metav1.ListOptions{LabelSelector: "tier in (back, test)"}, []string{"c", "d"}},
		"all but a value": {metav1.ListOptions{LabelSelector: "tier!=front"}, []string{"c", "d"}},
		"a name":          {metav1.ListOptions{FieldSelector: "metadata.name=c"}, []string{"c"}},
		"a label and a name": {
			metav1.ListOptions{LabelSelector: "tier=front", FieldSelector: "metadata.name!=a"}, []string{"b"}},
		"nothing":                    {metav1.ListOptions{LabelSelector: "tier=none"}, []string{}},
		"no more than asked at once": {metav1.ListOptions{Limit: 3}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := webs.List(t.Context(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(list)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if more := list.Continue != ""; more != (test.options.Limit > 0) {
				t.Errorf("more to come = %v", more)
			}
		})
	}
	t.Run("not by a field of the spec", func(t *testing.T) {
		_, err := webs.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.image=nginx"})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("list: %v, want a refusal: the CRD names no selectable fields", err)
		}
	})
}

func TestDeleteCollectionDeletesWhatIsSelected(t *testing.T) {
	webs := newWebs(t)
	tiers(t, webs)
	if err := webs.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "tier=front"}); err != nil {
		t.Fatal(err)
	}
	left, err := webs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c", "d"}, names(left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestSpecAndStatusHaveTheirOwnAddresses(t *testing.T) {
	webs := newWebs(t)
	web := newMyWeb("shop")
	web.Status.ReadyReplicas = 7
	created := create(t, webs, web)
	if created.Status.ReadyReplicas != 0 {
		t.Errorf("create wrote status")
	}

	created.Spec.Image, created.Status.ReadyReplicas = "httpd", 2
	updated, err := webs.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Image != "nginx" || updated.Status.ReadyReplicas != 2 || updated.Generation != 1 {
		t.Errorf("after UpdateStatus: image %s, ready %d, generation %d; want nginx, 2, 1", updated.Spec.Image,
			updated.Status.ReadyReplicas, updated.Generation)
	}

	updated.Spec.Image, updated.Status.ReadyReplicas = "httpd", 5
	updated, err = webs.Update(t.Context(), updated, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Image != "httpd" || updated.Status.ReadyReplicas != 2 || updated.Generation != 2 {
		t.Errorf("after Update: image %s, ready %d, generation %d; want httpd, 2, 2", updated.Spec.Image,
			updated.Status.ReadyReplicas, updated.Generation)
	}
}

func TestScaleIsTheSameNumberInAnotherForm(t *testing.T) {
	webs := newWebs(t)
	web := create(t, webs, newMyWeb("shop"))
	web.Status.ReadyReplicas, web.Status.Selector = 1, "app.kubernetes.io/instance=shop"
	if _, err := webs.UpdateStatus(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	scale, err := webs.GetScale(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 1 || scale.Status.Replicas != 1 ||
		scale.Status.Selector != "app.kubernetes.io/instance=shop" {
		t.Errorf("scale reads %+v %+v", scale.Spec, scale.Status)
	}
	scale.Spec.Replicas = 4
	if _, err := webs.UpdateScale(t.Context(), "shop", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := *get(t, webs, "shop").Spec.Replicas; got != 4 {
		t.Errorf("spec.replicas = %d, want 4", got)
	}
	scale.ResourceVersion, scale.Spec.Replicas = "", 11
	if _, err := webs.UpdateScale(t.Context(), "shop", scale, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("scale to 11: %v, want a refusal", err)
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
		if err != nil {
			t.Fatal(err)
		}
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
		condition := metav1ac.Condition().WithType(conditionType).WithStatus(status).WithReason(webv1.ReasonAsExpected).
			WithMessage("").WithLastTransitionTime(metav1.NewTime(time.Unix(0, 0)))
		_, err := webs.ApplyStatus(t.Context(),
			webv1ac.MyWeb("shop", "").WithStatus(webv1ac.MyWebStatus().WithConditions(condition)),
			metav1.ApplyOptions{FieldManager: manager})
		if err != nil {
			t.Fatal(err)
		}
	}

	apply("one", webv1.ConditionAvailable, metav1.ConditionTrue)
	apply("another", webv1.ConditionDegraded, metav1.ConditionFalse)
	apply("one", webv1.ConditionAvailable, metav1.ConditionFalse)

	got := map[string]metav1.ConditionStatus{}
	for _, condition := range get(t, webs, "shop").Status.Conditions {
		got[condition.Type] = condition.Status
	}
	want := map[string]metav1.ConditionStatus{
		webv1.ConditionAvailable: metav1.ConditionFalse, webv1.ConditionDegraded: metav1.ConditionFalse}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestWatchReportsEachChangeInOrder(t *testing.T) {
	webs := newWebs(t)
	create(t, webs, newMyWeb("before"))
	list, err := webs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := webs.Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "tier=front"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()

	web := newMyWeb("shop")
	web.Labels = map[string]string{"tier": "front"}
	web = create(t, webs, web)
	create(t, webs, newMyWeb("other"))
	web.Spec.Image = "httpd"
	if web, err = webs.Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	web.Labels["tier"] = "back" // leaves the selection, which the watch reports as a deletion
	if _, err = webs.Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	type event struct {
		Type        watch.EventType
		Name, Image string
	}
	want := []event{{watch.Added, "shop", "nginx"}, {watch.Modified, "shop", "httpd"}, {watch.Deleted, "shop", "httpd"}}
	var got []event
	for len(got) < len(want) {
		select {
		case e, open := <-watcher.ResultChan():
			if !open {
				t.Fatalf("the watch ended after %v", got)
			}
			web := e.Object.(*webv1.MyWeb)
			got = append(got, event{e.Type, web.Name, web.Spec.Image})
		case <-time.After(10 * time.Second):
			t.Fatalf("no event for 10 s after %v", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestBadSpecsAreRefusedWithTheirField(t *testing.T) {
	webs := newWebs(t)
	for name, test := range map[string]struct {
		spec  webv1.MyWebSpec
		field string
	}{
		"an empty image":        {webv1.MyWebSpec{}, "spec.image"},
		"an image with a space": {webv1.MyWebSpec{Image: "a b"}, "spec.image"},
		"a port too low":        {webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(29999))}, "spec.nodePortNumber"},
		"too many replicas":     {webv1.MyWebSpec{Image: "nginx", Replicas: new(int32(11))}, "spec.replicas"},
		"too long a page": {webv1.MyWebSpec{Image: "nginx", PageContentHTML: new(strings.Repeat("x", 40001))},
			"spec.pageContentHtml"},
	} {
		t.Run(name, func(t *testing.T) {
			web := newMyWeb("bad")
			web.Spec = test.spec
			_, err := webs.Create(t.Context(), web, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("create: %v, want a refusal of %s", err, test.field)
			}
		})
	}
}
