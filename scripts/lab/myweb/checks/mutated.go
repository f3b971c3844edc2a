package checks

import (
	"slices"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// mutated are the checks of row 34: whatever the operator writes, the API server stores a different object.
func mutated() (checks []suite.Check) {
	checks = append(checks, suite.Check{ID: "fault/34-page-edited", Run: pageMutated,
		Title: "a MyWeb whose new page a policy replaces is not completed for its new generation"})
	for _, m := range mutations {
		checks = append(checks, suite.Check{ID: "fault/34-" + short(m.resource) + "-mutated",
			Within: 3 * time.Minute, Run: m.run,
			Title: "a policy that changes " + m.what + " is reported; the other children are made, there is no PATCH loop"})
	}
	return checks
}

// A mutation is a policy's change of the children of a kind.
type mutation struct {
	resource, what string
	// patch is the change in CEL; field is a part of the name of each field that it changes.
	patch string
	field []string
}

var mutations = []mutation{{
	resource: suite.ConfigMaps, what: "the page", field: []string{"index.html"},
	patch: `[JSONPatch{op: "replace", path: "/data/index.html", value: "mutated"}]`,
}, {
	resource: suite.Deployments, what: "image and resources", field: []string{"image"},
	patch: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "example.com/mutated"},` +
		` JSONPatch{op: "add", path: "/spec/template/spec/containers/0/resources",` +
		` value: Object.spec.template.spec.containers.resources{requests: {"cpu": "7m", "memory": "7Mi"}}}]`,
}, {
	resource: suite.Services, what: "a label of the Service", field: []string{"app.kubernetes.io/name"},
	patch: `[JSONPatch{op: "replace", path: "/metadata/labels/app.kubernetes.io~1name", value: "mutated"}]`,
}}

// unanswered is longer than the pause between two tries of an operator that retries forever.
const unanswered = 12 * time.Second

func (m mutation) run(t *suite.T) {
	stop := t.Mutate(m.resource, m.patch)
	t.Create("web", suite.Sample())
	web := m.reported(t)
	t.Eventually("all children are made", patience, func() error { return t.Controlled(web) })
	t.AwaitQuiet(2 * time.Second)
	mark := t.Mark()
	staysUntried(t, m.resource)
	t.Warned("web", 1, 1)
	// Another client changes the child beside it, then the MyWeb changes: each causes one more try at most.
	for _, change := range []func(){
		func() { t.Edit(m.resource, "web", `{"metadata":{"labels":{"team":"other"}}}`) },
		func() { t.Patch("web", `{"spec":{"image":"nginx:2","pageContentHtml":"<h1>changed</h1>"}}`) },
	} {
		change()
		m.reported(t)
		t.AwaitQuiet(2 * time.Second)
		m.triedOnce(t, mark)
		mark = t.Mark()
	}
	stop()
	recovered(t, m.resource)
	wantMade(t, 0, 1, suite.Kinds...)
}

// recovered changes a child whose policy is gone, which leads to another try, and waits until the MyWeb is served.
func recovered(t *suite.T, resource string) {
	t.Edit(resource, "web", `{"metadata":{"labels":null}}`)
	web, _ := converged(t, "web")
	t.Recovered(web)
	if labels := t.Read(resource, "web").GetLabels(); labels["app.kubernetes.io/name"] == "mutated" || len(labels) == 0 {
		t.Errorf("the policy is gone, and the labels are %v", labels)
	}
}

// staysUntried fails the check when a child is written although its inputs did not change. The status may be written,
// because the pods of another child become ready.
func staysUntried(t *suite.T, resource string) {
	mark := t.Mark()
	t.Pause(unanswered)
	tries := suite.About(t.Writes(mark), resource)
	if len(tries) > 0 {
		t.Errorf("%d writes of the %s in %v in which nothing happened: %s",
			len(tries), suite.KindOf[resource], unanswered, suite.Lines(tries))
	}
}

// reported waits for a status that names the child that differs from its desired state, and the field.
func (m mutation) reported(t *suite.T) *suite.Web {
	return t.Reported("web", "ChildMutated", patience, append([]string{suite.KindOf[m.resource], "web"}, m.field...)...)
}

// triedOnce fails the check when the child was written more than once since a mark. A conflict does not count as a
// try.
func (m mutation) triedOnce(t *suite.T, mark int) {
	tries := slices.DeleteFunc(suite.About(t.Writes(mark), m.resource), func(e ledger.Entry) bool {
		return slices.Contains(e.Served, 409)
	})
	if len(tries) > 1 {
		t.Errorf("the %s was written %d times, though once shows that the policy changes it again: %s",
			suite.KindOf[m.resource], len(tries), suite.Lines(tries))
	}
}

// pageMutated begins with a served MyWeb.
func pageMutated(t *suite.T) {
	t.Serve("web", suite.Sample())
	history := t.Follow()
	stop := t.Mutate(suite.ConfigMaps, mutations[0].patch)
	web := t.SetPage("web", "<h1>changed</h1>")
	t.Reported("web", "ChildMutated", patience)
	t.AwaitQuiet(2 * time.Second)
	staysUntried(t, suite.ConfigMaps)
	if now := t.Web("web"); now.Status.Completed {
		t.Errorf("completed is true, and the page that is served is not that of generation %d", web.Generation)
	}
	history.NeverCompleted(t.Web("web"))
	stop()
	recovered(t, suite.ConfigMaps)
}
