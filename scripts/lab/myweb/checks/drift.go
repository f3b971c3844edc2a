package checks

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// childChecks are the checks of the children.
var childChecks = []suite.Check{
	{ID: "fault/17-all-deleted", Run: func(t *suite.T) { deletedAndQuiet(t, suite.Kinds...) },
		Title: "all children, deleted at once, come back once"},
	{ID: "fault/18-configmap-edited", Run: func(t *suite.T) { editedAtOnce(t, suite.ConfigMaps) },
		Title: "each edited field of the ConfigMap is restored in place"},
	{ID: "fault/18-deployment-edited", Within: 4 * time.Minute, Run: func(t *suite.T) { editedAtOnce(t, suite.Deployments) },
		Title: "each edited field of the Deployment is restored in place"},
	{ID: "fault/18-service-edited", Fast: true, Within: 3 * time.Minute, Run: func(t *suite.T) { editedAtOnce(t, suite.Services) },
		Title: "each edited field of the Service is restored in place"},
	{ID: "fault/18-service-port-added", Run: portAdded,
		Title: "a second port that a user added to the Service stays, also when the first port is edited and restored"},
	{ID: "fault/19-owner-references", Fast: true, Run: func(t *suite.T) { stripped(t, "ownerReferences") },
		Title: "children that lost their owner references get them back"},
	{ID: "fault/19-labels", Run: func(t *suite.T) { stripped(t, "labels") },
		Title: "children that lost their labels get them back"},
	{ID: "fault/21-second-writer", Run: secondWriter,
		Title: "a client that edits the page ten times a second is not fought as fast; in the end the page is restored"},
	{ID: "fault/21-autoscaler", Run: autoscaler, Within: 3 * time.Minute,
		Title: "an autoscaler that scales the Deployment is not fought as fast; the status names it, and what it should scale"},
	{ID: "fault/25-older-child", Run: olderChild,
		Title: "an owned Deployment with another selector is kept and reported, or recreated"},
}

// driftCorrection are the checks of each kind of child and of each edit.
func driftCorrection() (checks []suite.Check) {
	for _, k := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "behaviour/05-deleted-" + short(k), Fast: k == suite.ConfigMaps,
				Title: "a deleted " + suite.KindOf[k] + " comes back, once", Run: func(t *suite.T) { deleted(t, k) }})
	}
	for _, e := range edits {
		if e.id != "" {
			checks = append(checks,
				suite.Check{ID: "behaviour/05-edited-" + e.id, Fast: e.id == "page" || e.id == "image",
					Title: e.title + " is restored by one write when a user edits it",
					Run:   func(t *suite.T) { edited(t, e) }})
		}
	}
	return checks
}

// deleted deletes children of a MyWeb. Each comes back by one write, and nothing else is written. A resync must not count
// as a reaction. A resync is at least a second away from the next, so two reactions within a second show that the program
// watches. When the machine is slower, the last deletion comes after a time in which a resync would have happened.
func deleted(t *suite.T, resources ...string) (mark int) {
	port := t.NodePort()
	t.Serve("web", asking(port))
	begin := time.Now()
	before, mark := broughtBack(t, resources...)
	isObserved := len(resources) == 1 && t.Observed(resources[0], time.Second/2)
	if isObserved {
		before, mark = broughtBack(t, resources...)
	}
	if !isObserved || time.Since(begin) > time.Second {
		t.Settled("web")
		t.AwaitQuietSinceEvent(1200 * time.Millisecond)
		before, mark = broughtBack(t, resources...)
	}
	web := t.Settled("web")
	after := t.Children(web)
	wantPort(t, web, after, port)
	var replaced []string
	for _, k := range resources {
		replaced = append(replaced, suite.KindOf[k])
	}
	t.SameChildren(before, after, replaced...)
	onlyWrites(t, mark, resources...)
	return mark
}

// broughtBack deletes children of a MyWeb and returns when they are back. It returns the earlier children, and the mark
// before the deletion.
func broughtBack(t *suite.T, resources ...string) (before *suite.Children, mark int) {
	before, mark = t.Children(t.Web("web")), t.Mark()
	for _, k := range resources {
		t.Remove(k, "web")
	}
	for _, k := range resources {
		old := before.Objects()[suite.KindOf[k]].GetUID()
		t.Reaction("the "+suite.KindOf[k]+" is back", 0, func() error { return t.Another(k, "web", old) })
	}
	return before, mark
}

// deletedAndQuiet is deleted, and expects the same when the pods run.
func deletedAndQuiet(t *suite.T, resources ...string) {
	mark := deleted(t, resources...)
	converged(t, "web")
	onlyWrites(t, mark, resources...)
	t.StaysQuiet(time.Second)
}

// allocatedPort deletes a Service. The API server frees the node port of a deleted Service a moment after it reported
// the deletion, and refuses the port until then: the lab makes the moment longer, by two refusals in the same words.
func allocatedPort(t *suite.T) {
	history := t.Follow()
	service := t.Children(t.Serve("web", suite.Sample())).Service
	refused := field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), portOf(service),
		"provided port is already allocated")
	t.Rule(proxy.Rule{Match: toWrite(suite.Services), Times: 2, Do: proxy.Fail(
		apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{refused}))})
	t.Remove(suite.Services, "web")
	t.Eventually("another Service is there", 0, func() error { return t.Another(suite.Services, "web", service.UID) })
	web := t.Settled("web")
	wantPort(t, web, t.Children(web), portOf(service))
	history.NeverDegraded(web)
}

// driftCorrected makes an edit of a child, and expects that one write restores its content.
func driftCorrected(t *suite.T, web *suite.Web, resource, what string, edit func(before *suite.Children)) {
	before, mark, want := t.Children(web), t.Mark(), contentOf(t, resource, "web")
	edit(before)
	isBack := func() error { return isRestored(t, resource, "web", want) }
	t.Reaction(what+" is restored", 0, isBack)
	web = t.Settled("web")
	if err := isBack(); err != nil {
		t.Errorf("expected that %s stays restored; but %v", what, err)
	}
	t.SameChildren(before, t.Children(web))
	onlyWrites(t, mark, resource)
}

func edited(t *suite.T, e edit) {
	web := t.Serve("web", asking(t.NodePort()))
	driftCorrected(t, web, e.resource, e.title, func(before *suite.Children) { e.apply(t, "web", before) })
}

// editedHash restores the pod template of the earlier page: it differs only in the hash, whichever field has the
// hash.
func editedHash(t *suite.T) {
	old := t.Children(t.Serve("web", suite.Sample())).Deployment.Spec.Template
	t.SetPage("web", "<h1>Next</h1>")
	web := t.Settled("web")
	driftCorrected(t, web, suite.Deployments, "the hash", func(*suite.Children) {
		t.Set(suite.Deployments, "web", "/spec/template", old)
	})
}

// editedAtOnce makes the edits of a kind, and edits each other field that the operator applied. It has a separate MyWeb
// for each edit, because an operator may limit the rate of corrections for each MyWeb.
func editedAtOnce(t *suite.T, resource string) {
	edits := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.resource != resource })
	name := func(n int) string { return fmt.Sprintf("web-%d", n) }
	for n := range edits {
		t.Create(name(n), asking(t.NodePort()))
	}
	before, content := make([]*suite.Children, len(edits)), make([]any, len(edits))
	for n := range edits {
		_, before[n] = converged(t, name(n))
		content[n] = contentOf(t, resource, name(n))
	}
	mark := t.Mark()
	for n, e := range edits {
		e.apply(t, name(n), before[n])
	}
	for n, e := range edits {
		t.Eventually(e.title+" is restored", patience, func() error {
			return isRestored(t, resource, name(n), content[n])
		})
	}
	for n := range edits {
		_, after := converged(t, name(n))
		t.SameChildren(before[n], after)
	}
	wantMade(t, mark, 0, suite.Kinds...)
	fieldsEdited(t, resource)
	t.StaysQuiet(time.Second)
}

// contentOf is the desired state in a child: its spec, or its data.
func contentOf(t *suite.T, resource, name string) any {
	o := t.Read(resource, name).Object
	if resource == suite.ConfigMaps {
		return o["data"]
	}
	return o["spec"]
}

// isRestored returns an error unless a child has its content again. Additions to a Deployment may stay.
func isRestored(t *suite.T, resource, name string, want any) error {
	now := contentOf(t, resource, name)
	if resource == suite.Deployments && holds("", now, want) {
		return nil
	}
	return suite.Differ(now, want)
}

// holds reports whether a value contains another value. Additions by other clients may stay, except in selectors of
// pods.
func holds(field string, have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && holds(key, have[key], value)
		}
		return ok && (field != "selector" || len(have) == len(want))
	case []any:
		have, ok := have.([]any)
		for _, value := range want {
			ok = ok && slices.ContainsFunc(have, func(h any) bool { return holds("", h, value) })
		}
		return ok
	default:
		return reflect.DeepEqual(have, want)
	}
}
