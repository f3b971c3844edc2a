package checks

import (
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func pageRolls(t *suite.T) {
	web := t.Serve("web", replicas(2))
	before := t.Children(web)
	old, h := uids(podsOf(t, web)), t.Follow()
	t.SetPage("web", "<h1>Changed</h1>")
	web = t.Completed("web")
	after, pods := t.Children(web), podsOf(t, web) // without waiting: completed describes the current state
	if reflect.DeepEqual(before.Deployment.Spec.Template, after.Deployment.Spec.Template) {
		t.Errorf("expected another pod template; but it did not change with the page")
	}
	if page := after.ConfigMap.Data["index.html"]; page != "<h1>Changed</h1>" {
		t.Errorf("expected the changed page in index.html; but it has %q", page)
	}
	for _, p := range pods {
		if slices.Contains(old, p.UID) {
			t.Errorf("expected that all pods are new; but it is completed, and pod %s still has the old page", p.Name)
		}
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

// changed serves a MyWeb and patches its spec. When it is completed, look judges it without waiting; old are the pods
// of before. One write of a child of the resource must suffice, and no child is replaced.
func changed(t *suite.T, spec suite.WebSpec, patch, resource string,
	look func(web *suite.Web, after *suite.Children, old []types.UID)) {
	web := t.Serve("web", spec)
	before, old, mark := t.Children(web), uids(podsOf(t, web)), t.Mark()
	t.Must(before.Follow(web.Spec), "compare the children with the spec")
	t.Patch("web", patch)
	web = t.Completed("web")
	after := t.Children(web)
	look(web, after, old)
	t.AwaitQuiet(quiet)
	t.SameChildren(before, after)
	onlyWrites(t, mark, resource)
}

func imageChanged(t *suite.T) {
	const next = "registry:5000/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	changed(t, suite.Sample(), `{"spec":{"image":"`+next+`"}}`, suite.Deployments,
		func(web *suite.Web, after *suite.Children, _ []types.UID) {
			if have := imageOf(t, after.Deployment); have != next {
				t.Errorf("expected the image %s; but it is %s", next, have)
			}
			for _, p := range podsOf(t, web) {
				if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Image == next }) {
					t.Errorf("expected that all pods are new; but it is completed, and pod %s has the old image", p.Name)
				}
			}
		})
}

func portIsChanged(t *suite.T) {
	next := t.NodePort()
	changed(t, asking(t.NodePort()), fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, next), suite.Services,
		func(web *suite.Web, after *suite.Children, old []types.UID) {
			wantPort(t, web, after, next)
			t.AwaitQuiet(quiet)
			if now := uids(podsOf(t, web)); !slices.Equal(now, old) {
				t.Errorf("the pods are %v, and were %v: a changed port must not replace them", now, old)
			}
		})
}

func replicasChanged(t *suite.T) {
	changed(t, suite.Sample(), `{"spec":{"replicas":3}}`, suite.Deployments,
		func(web *suite.Web, after *suite.Children, old []types.UID) {
			wantPods(t, web, after.Deployment, 3)
			if now := uids(podsOf(t, web)); !slices.Contains(now, old[0]) {
				t.Errorf("the pods are %v; the first one was %v, and had no reason to be deleted", now, old)
			}
		})
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
		_, err := t.Objects(suite.Resource).Patch(t.Ctx, "web", types.MergePatchType, []byte(change),
			metav1.PatchOptions{}, "scale")
		t.Must(err, "scale")
		web := t.Completed("web")
		after := t.Children(web)
		wantPods(t, web, after.Deployment, want)
		t.SameChildren(before, after)
		scale, err := t.Objects(suite.Resource).Get(t.Ctx, "web", metav1.GetOptions{}, "scale")
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
	web := keepsPort(t, before, port, `{"spec":{"nodePortNumber":null}}`, `{"spec":{"image":"nginx:1.29"}}`)
	if web.Spec.NodePortNumber != nil {
		t.Errorf("nodePortNumber is %d, and was removed", *web.Spec.NodePortNumber)
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
	web = keepsPort(t, before, port, `{"spec":{"pageContentHtml":"next"}}`, `{"spec":{"replicas":2}}`)
	if web.Spec.NodePortNumber != nil {
		t.Errorf("the operator wrote into the spec: %s", suite.JSON(web.Spec))
	}
}

// keepsPort makes changes, after each of which the same children have the node port.
func keepsPort(t *suite.T, before *suite.Children, port int32, changes ...string) (web *suite.Web) {
	for _, change := range changes {
		t.Patch("web", change)
		web = t.Settled("web")
		after := t.Children(web)
		wantPort(t, web, after, port)
		t.SameChildren(before, after)
	}
	return web
}

// keyRemoved takes a page and a replica count out of the spec.
func keyRemoved(t *suite.T) {
	spec := suite.WebSpec{Image: "nginx", PageContentHTML: new("<h1>Hello</h1>"), Replicas: new(int32(3))}
	before := t.Children(t.Serve("web", spec))
	mark := t.Mark()
	t.Patch("web", `{"spec":{"pageContentHtml":null,"replicas":null}}`)
	web, after := inPlace(t, before, mark, 0)
	if p := web.Spec.PageContentHTML; p != nil && *p == *spec.PageContentHTML { // a webhook may fill in another page
		t.Errorf("the page came back into the spec: %q", *p)
	}
	if after.ConfigMap.Data["index.html"] == *spec.PageContentHTML {
		t.Errorf("the page is gone from the spec, and still in the ConfigMap")
	}
	if reflect.DeepEqual(after.Deployment.Spec.Template, before.Deployment.Spec.Template) {
		t.Errorf("the page is gone, and the pods' template is as before: they go on serving it")
	}
}
