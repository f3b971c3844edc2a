package conformance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func pageRolls(t *suite.T) {
	spec := suite.Sample()
	spec.Replicas = new(int32(2))
	web := t.Serve("web", spec)
	before := t.Children(web)
	old, h := uids(podsOf(t, web)), t.Follow()
	t.SetPage("web", "<h1>Changed</h1>")
	web = t.Completed("web")
	after := t.Children(web)
	for _, p := range podsOf(t, web) { // without waiting: completed describes the current state
		if slices.Contains(old, p.UID) {
			t.Errorf("expected new pods alone; but it is completed, and pod %s still has the old page", p.Name)
		}
	}
	if page := after.ConfigMap.Data["index.html"]; page != "<h1>Changed</h1>" {
		t.Errorf("expected the changed page in index.html; but it has %q", page)
	}
	if reflect.DeepEqual(before.Deployment.Spec.Template, after.Deployment.Spec.Template) {
		t.Errorf("expected another pod template; but it did not change with the page")
	}
	t.SameChildren(before, after)
	t.AwaitQuiet(quiet)
	h.CompletedOnce(t.Completed("web"))
}

func pageHash(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	template := func(web *suite.Web) string { return suite.JSON(t.Children(web).Deployment.Spec.Template) }
	first := template(web)
	t.SetPage("web", "another")
	other := template(t.Completed("web"))
	t.SetPage("web", *web.Spec.PageContentHTML)
	second := template(t.Completed("web"))
	if first == other {
		t.Errorf("two pages have one pod template: %s", first)
	}
	if first != second {
		t.Errorf("the same page has two pod templates:\n%s\n%s", first, second)
	}
}

func imageChanged(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before, mark := t.Children(web), t.Mark()
	const next = "registry:5000/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	t.Patch("web", `{"spec":{"image":"`+next+`"}}`)
	web = t.Completed("web")
	after := t.Children(web)
	if have := t.Image(after.Deployment); have != next {
		t.Errorf("expected the image %s; but it is %s", next, have)
	}
	for _, p := range podsOf(t, web) {
		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Image == next }) {
			t.Errorf("expected new pods alone; but it is completed, and pod %s has the old image", p.Name)
		}
	}
	t.AwaitQuiet(quiet)
	t.SameChildren(before, after)
	onlyWrites(t, mark, suite.Deployments)
}

func portIsChanged(t *suite.T) {
	port, portChangedTo := t.NodePort(), t.NodePort()
	web := t.Serve("web", asking(port))
	before, old, mark := t.Children(web), uids(podsOf(t, web)), t.Mark()
	if have := portOf(before.Service); have != port {
		t.Errorf("expected the node port %d; but it is %d", port, have)
	}
	t.Patch("web", fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, portChangedTo))
	web = t.Completed("web")
	after := t.Children(web)
	wantPort(t, web, after, portChangedTo)
	t.AwaitQuiet(quiet)
	t.SameChildren(before, after)
	onlyWrites(t, mark, suite.Services)
	if now := uids(podsOf(t, web)); !slices.Equal(now, old) {
		t.Errorf("the pods are %v, and were %v: a changed port must not replace them", now, old)
	}
}

// wantPort fails the check when Service and status do not have this node port.
func wantPort(t *suite.T, web *suite.Web, c *suite.Children, want int32) {
	if have := portOf(c.Service); have != want {
		t.Errorf("expected the node port %d; but it is %d", want, have)
	}
	if have := web.Status.NodePort; t.Reports() && (have == nil || *have != want) {
		t.Errorf("expected status.nodePort %d; but it is %s", want, suite.JSON(have))
	}
}

func replicasChanged(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before, old, mark := t.Children(web), uids(podsOf(t, web)), t.Mark()
	t.Patch("web", `{"spec":{"replicas":3}}`)
	web = t.Completed("web")
	after := t.Children(web)
	wantPods(t, web, after.Deployment, 3)
	if now := uids(podsOf(t, web)); !slices.Contains(now, old[0]) {
		t.Errorf("the pods are %v; the first one was %v, and had no reason to be deleted", now, old)
	}
	t.AwaitQuiet(quiet)
	t.SameChildren(before, after)
	onlyWrites(t, mark, suite.Deployments)
}

func wantPods(t *suite.T, web *suite.Web, d *appsv1.Deployment, want int32) {
	if *d.Spec.Replicas != want || t.Reports() && web.Status.ReadyReplicas != want {
		t.Errorf("%d replicas, status.readyReplicas %d; want %d", *d.Spec.Replicas, web.Status.ReadyReplicas, want)
	}
	if found := podsOf(t, web); len(found) != int(want) {
		t.Errorf("completed with %d pods, want %d", len(found), want)
	}
}

func scaled(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	for _, want := range []int32{3, 0, 1} {
		change := fmt.Sprintf(`{"spec":{"replicas":%d}}`, want)
		_, err := t.Objects(suite.Resource).Patch(t.Context(), "web", types.MergePatchType, []byte(change),
			metav1.PatchOptions{}, "scale")
		t.Must(err, "scale")
		web := t.Completed("web")
		after := t.Children(web)
		wantPods(t, web, after.Deployment, want)
		t.SameChildren(before, after)
		scale, err := t.Objects(suite.Resource).Get(t.Context(), "web", metav1.GetOptions{}, "scale")
		t.Must(err, "read the scale")
		status, _ := scale.Object["status"].(map[string]any)
		replicas, _ := status["replicas"].(int64)
		if selector, _ := status["selector"].(string); selector == "" || selector != web.Status.Selector ||
			replicas != int64(want) {
			t.Errorf("the scale says %s, want %d replicas and selector %q", suite.JSON(status), want, web.Status.Selector)
		}
	}
}

func portIsRemoved(t *suite.T) {
	port := t.NodePort()
	before := t.Children(t.Serve("web", asking(port)))
	for _, change := range []string{`{"spec":{"nodePortNumber":null}}`, `{"spec":{"image":"nginx:1.29"}}`} {
		t.Patch("web", change)
		web := t.Completed("web")
		if web.Spec.NodePortNumber != nil {
			t.Fatalf("nodePortNumber is %d, and was removed", *web.Spec.NodePortNumber)
		}
		t.AwaitQuiet(quiet)
		after := t.Children(web)
		wantPort(t, web, after, port)
		t.SameChildren(before, after)
	}
}

func portAllocated(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before := t.Children(web)
	port := portOf(before.Service)
	if port < 30000 || port > 32767 {
		t.Fatalf("the node port is %d, want one of 30000 to 32767", port)
	}
	wantPort(t, web, before, port)
	for _, change := range []string{`{"spec":{"pageContentHtml":"next"}}`, `{"spec":{"replicas":2}}`} {
		t.Patch("web", change)
		web = t.Completed("web")
		t.AwaitQuiet(quiet)
		after := t.Children(web)
		wantPort(t, web, after, port)
		t.SameChildren(before, after)
	}
	if said := strings.Contains(suite.JSON(web.Spec), "nodePortNumber"); said {
		t.Errorf("the operator wrote into the spec: %s", suite.JSON(web.Spec))
	}
}
