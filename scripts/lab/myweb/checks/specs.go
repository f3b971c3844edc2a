package checks

import (
	"fmt"
	"strings"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// specChecks are the checks of specs.
var specChecks = []suite.Check{
	{ID: "fault/20-key-removed", Fast: true, Run: keyRemoved,
		Title: "a page and a replica count that are taken out of the spec are gone from the children"},
	{ID: "fault/23-port-taken-and-back", Fast: true, Run: badPort,
		Title: "a spec that cannot be served is reported with the reason, leaves the pods alone, and recovers when " +
			"it is reverted"},
	{ID: "fault/23-refused", Run: refusedChild,
		Title: "a spec whose Deployment the API server refuses is reported with the reason, leaves the pods alone, and " +
			"recovers when it is reverted"},
	{ID: "fault/23-invalid", Run: badUpdates,
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

// badPort requests a node port that another Service has.
func badPort(t *suite.T) {
	port := t.NodePort()
	t.Make(suite.Services, portHolder(port))
	t.Serve("web", suite.Sample())
	reverted(t, fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, port), `{"spec":{"nodePortNumber":null}}`,
		nodePortUnavailable, fmt.Sprint(port))
}

// refusedChild requests an image that a policy forbids.
func refusedChild(t *suite.T) {
	t.Serve("web", suite.Sample())
	t.Forbid(suite.Deployments, `!object.spec.template.spec.containers.exists(c, c.image == "forbidden")`, notAllowed)
	reverted(t, `{"spec":{"image":"forbidden"}}`, `{"spec":{"image":"nginx"}}`, childRejected, notAllowed)
}

// tooLarge requests a page that a policy finds too large.
func tooLarge(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	t.Forbid(suite.ConfigMaps, `size(object.data["index.html"]) < 1000`, notAllowed)
	reverted(t, `{"spec":{"pageContentHtml":"`+strings.Repeat("x", 2000)+`"}}`,
		`{"spec":{"pageContentHtml":"`+*web.Spec.PageContentHTML+`"}}`, childRejected, notAllowed)
}

// reverted changes a MyWeb to a spec that cannot be served, and back. This is reported with the reason, another MyWeb
// is served meanwhile, and in the end all is as before, also the pods.
func reverted(t *suite.T, bad, good, reason string, words ...string) {
	before, mark := t.Children(t.Web("web")), t.Mark()
	t.Patch("web", bad)
	t.Reported("web", reason, patience, words...)
	t.Create("other", suite.Sample())
	wantBackoff(t)
	if t.Web("web").Status.Completed {
		t.Errorf("completed, though the spec cannot be served")
	}
	t.Completed("other")
	t.Patch("web", good)
	after := recovers(t)
	t.SameChildren(before, after)
	wantMade(t, mark, 1, suite.Kinds...) // those of the MyWeb "other"
	if got, want := portOf(after.Service), portOf(before.Service); got != want {
		t.Errorf("the node port is %d, before %d", got, want)
	}
	if got, want := after.Deployment.Generation, before.Deployment.Generation; got != want {
		t.Errorf("the Deployment was changed: generation %d, before %d", got, want)
	}
}
