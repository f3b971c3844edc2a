package faults

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// specChecks are the checks of specs.
var specChecks = []suite.Check{
	{ID: "fault/20-key-removed", Fast: true, Run: keyRemoved,
		Title: "a page and a replica count that are taken out of the spec are gone from the children"},
	{ID: "fault/23-port-taken-and-back", Run: badPort,
		Title: "a spec that cannot be served is reported with the reason, leaves the pods alone, and recovers when " +
			"it is reverted"},
	{ID: "fault/23-refused", Run: refusedChild,
		Title: "a spec whose Deployment the API server refuses is reported with the reason, leaves the pods alone, and " +
			"recovers when it is reverted"},
	{ID: "fault/23-invalid", Run: invalid,
		Title: "a spec that the API server refuses itself changes nothing"},
	{ID: "fault/24-too-large", Run: tooLarge,
		Title: "a page that is too large for its ConfigMap is reported, tried again with backoff, and recovers; another " +
			"MyWeb is served"},
	{ID: "fault/24-largest-page", Run: largestPages,
		Title: "the largest page is served with a status, whatever its characters; one character more is refused with " +
			"the field's path"},
	{ID: "fault/26-same-in-other-words", Fast: true, Run: otherWords,
		Title: "defaults of the API server and equal values in another spelling cost no write"},
}

func keyRemoved(t *suite.T) {
	spec := suite.Sample()
	spec.Replicas = new(int32(3))
	before := t.Children(t.Serve("web", spec))
	mark := t.Mark()
	t.Patch("web", `{"spec":{"pageContentHtml":null,"replicas":null}}`)
	web, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	if p := web.Spec.PageContentHTML; p != nil && *p == *spec.PageContentHTML { // a webhook may fill in another page
		t.Errorf("the page came back into the spec: %q", *web.Spec.PageContentHTML)
	}
	if after.ConfigMap.Data["index.html"] == *spec.PageContentHTML {
		t.Errorf("the page is gone from the spec, and still in the ConfigMap")
	}
	if err := suite.Differ(after.Deployment.Spec.Template, before.Deployment.Spec.Template); err == nil {
		t.Errorf("the page is gone, and the pods' template is as before: they go on serving it")
	}
	t.StaysQuiet(time.Second)
}

// badPort requests a node port that another Service has.
func badPort(t *suite.T) {
	port := t.NodePort()
	t.Make(suite.Services, suite.PortHolder(port))
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	t.Patch("web", fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, port))
	t.Reported("web", "NodePortUnavailable", patience, fmt.Sprint(port))
	wantBackoff(t)
	t.Patch("web", `{"spec":{"nodePortNumber":null}}`)
	web, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	if got, want := after.Service.Spec.Ports[0].NodePort, before.Service.Spec.Ports[0].NodePort; got != want {
		t.Errorf("the node port is %d, before %d", got, want)
	}
	wantAsBefore(t, web, before, after)
}

// wantAsBefore checks that a MyWeb has no error, and that its pods were not replaced.
func wantAsBefore(t *suite.T, web *suite.Web, before, after *suite.Children) {
	if after.Deployment.Generation != before.Deployment.Generation {
		t.Errorf("the Deployment was changed: generation %d, before %d", after.Deployment.Generation,
			before.Deployment.Generation)
	}
	t.Recovered(web)
}

// refusedChild requests an image that a policy forbids.
func refusedChild(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	t.Forbid(suite.Deployments, `!object.spec.template.spec.containers.exists(c, c.image == "forbidden")`, notAllowed)
	reverted(t, before, `{"spec":{"image":"forbidden"}}`, `{"spec":{"image":"nginx"}}`)
}

// tooLarge requests a page that a policy finds too large.
func tooLarge(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	t.Forbid(suite.ConfigMaps, `size(object.data["index.html"]) < 1000`, notAllowed)
	large := strings.Repeat("x", 2000)
	reverted(t, before, `{"spec":{"pageContentHtml":"`+large+`"}}`,
		`{"spec":{"pageContentHtml":"`+*suite.Sample().PageContentHTML+`"}}`)
}

// reverted changes a MyWeb to a spec that cannot be served, and back.
func reverted(t *suite.T, before *suite.Children, bad, good string) {
	mark := t.Mark()
	t.Patch("web", bad)
	t.Await("web", "is Degraded, and says why", patience, func(w *suite.Web) bool {
		c := w.Condition("Degraded")
		return c.Status == metav1.ConditionTrue && c.Message != "" && c.ObservedGeneration == w.Generation
	})
	t.Create("other", suite.Sample())
	wantBackoff(t)
	if t.Web("web").Status.Completed {
		t.Errorf("completed, though a child was refused")
	}
	t.Completed("other")
	t.Patch("web", good)
	web, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 1, suite.Kinds...) // those of the MyWeb "other"
	wantAsBefore(t, web, before, after)
}

func invalid(t *suite.T) {
	t.Serve("web", suite.Sample())
	mark := t.Mark()
	for field, spec := range map[string]suite.WebSpec{
		"spec.image":          {Image: "NOT AN IMAGE"},
		"spec.nodePortNumber": {Image: "nginx", NodePortNumber: new(int32(80))},
		"spec.replicas":       {Image: "nginx", Replicas: new(int32(-1))},
	} {
		if _, err := t.TryCreate("bad", spec); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("a bad %s was answered with %v", field, err)
		}
	}
	t.Pause(time.Second)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Errorf("writes after specs that were refused: %s", suite.Lines(writes))
	}
}

// longest is the largest number of characters of a page.
const longest = 40000

// largestPages are served, although the API server stores some characters as six bytes, and others as four.
func largestPages(t *suite.T) {
	pages := map[string]string{"escaped": "<", "wide": "😀"}
	for name, character := range pages {
		spec := suite.Sample()
		spec.PageContentHTML = new(strings.Repeat(character, longest))
		t.Create(name, spec)
	}
	for name, character := range pages {
		converged(t, name)
		spec := suite.Sample()
		spec.PageContentHTML = new(strings.Repeat(character, longest+1))
		if _, err := t.TryCreate("longer", spec); err == nil || !strings.Contains(err.Error(), "spec.pageContentHtml") {
			t.Errorf("a page of one character more was answered with %v, not with the path of the field", err)
		}
	}
	t.StaysQuiet(time.Second)
}

// otherWords enqueues the MyWeb without changing a field of the MyWeb or of the operator. The generation of the
// Deployment must stay (an annotation would change it), because otherwise its status would change, and with it the
// MyWeb's.
func otherWords(t *suite.T) {
	spec := suite.Sample()
	spec.Replicas = new(int32(1))
	t.Serve("web", spec)
	mark := t.Mark()
	t.Patch("web", `{"metadata":{"annotations":{"lab.example.com/note":"by a user"}}}`)
	for _, resource := range suite.Kinds {
		t.Edit(resource, "web", `{"metadata":{"labels":{"team":"other"}}}`)
	}
	t.Edit(suite.Deployments, "web",
		`{"spec":{"progressDeadlineSeconds":600,"minReadySeconds":0,"strategy":{"type":"RollingUpdate"}}}`)
	t.Edit(suite.Services, "web",
		`{"spec":{"sessionAffinity":"None","internalTrafficPolicy":"Cluster","ipFamilyPolicy":"SingleStack"}}`)
	t.Pause(2 * time.Second)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Errorf("%d writes for fields that the operator does not own: %s", len(writes), suite.Lines(writes))
	}
	web, _ := converged(t, "web")
	for _, resource := range suite.Kinds {
		if t.Read(resource, "web").GetLabels()["team"] != "other" {
			t.Errorf("the label that another client set on the %s is gone", suite.KindOf[resource])
		}
	}
	if web.Annotations["lab.example.com/note"] == "" {
		t.Errorf("the annotation that another client set on the MyWeb is gone")
	}
}
