package faults

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// childChecks are the checks of the children.
var childChecks = []suite.Check{
	{ID: "fault/17-all-deleted", Run: deleted(suite.Kinds...),
		Title: "all children, deleted at once, come back once"},
	{ID: "fault/18-configmap-edited", Run: edited(suite.ConfigMaps),
		Title: "an edited page is restored in place"},
	{ID: "fault/18-deployment-edited", Run: edited(suite.Deployments),
		Title: "each edited field of the Deployment is restored in place"},
	{ID: "fault/18-service-edited", Run: edited(suite.Services),
		Title: "each edited field of the Service is restored in place"},
	{ID: "fault/18-service-port-added", Run: portAdded,
		Title: "a second port that a user added to the Service stays, also when the first port is edited and restored"},
	{ID: "fault/19-owner-references", Fast: true, Run: ownersStripped,
		Title: "children that lost their owner references get them back"},
	{ID: "fault/19-labels", Run: labelsStripped,
		Title: "children that lost their labels get them back"},
	{ID: "fault/21-second-writer", Run: secondWriter,
		Title: "a client that edits the page ten times a second is not fought as fast; in the end the page is restored"},
	{ID: "fault/25-older-child", Run: olderChild,
		Title: "an owned Deployment with another selector is kept and reported, or recreated"},
}

// children are the checks of each kind of child.
func children() (checks []suite.Check) {
	for _, resource := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "fault/17-" + short(resource) + "-deleted", Fast: resource == suite.ConfigMaps,
				Run:   deleted(resource),
				Title: "a " + suite.KindOf[resource] + " that was deleted comes back once"},
			suite.Check{ID: "fault/22-" + short(resource) + "-taken", Fast: resource == suite.Services,
				Title: "a " + suite.KindOf[resource] +
					" that has the name but another owner is not touched; it is reported, and recovers",
				Run: taken(resource)},
			suite.Check{ID: "fault/27-" + short(resource) + "-create-held", Fast: resource == suite.ConfigMaps,
				Title: "a MyWeb deleted and recreated while its " + suite.KindOf[resource] + " is being created gets new children",
				Run:   recreated(resource)})
	}
	return checks
}

func deleted(resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		before := t.Children(t.Serve("web", suite.Sample()))
		mark := t.Mark()
		var kindsGone []string
		for _, resource := range resources {
			t.Remove(resource, "web")
			kindsGone = append(kindsGone, suite.KindOf[resource])
		}
		t.Eventually("the children are back", patience, func() error {
			for _, resource := range resources {
				if made(t, mark, resource) == 0 {
					return fmt.Errorf("no %s was made", suite.KindOf[resource])
				}
			}
			return nil
		})
		_, after := converged(t, "web")
		t.SameChildren(before, after, kindsGone...)
		for _, resource := range suite.Kinds {
			n := 0
			if slices.Contains(resources, resource) {
				n = 1
			}
			wantMade(t, mark, n, resource)
		}
		t.StaysQuiet(time.Second)
	}
}

// moreEdits are edits that no behaviour is about.
var moreEdits = []suite.Edit{
	{Title: "the container's port", Resource: suite.Deployments, Operations: []suite.Operation{
		{Op: "replace", Path: "/spec/template/spec/containers/CONTAINER/ports/0/containerPort", Value: 8080}}},
	{Title: "the whole selector", Resource: suite.Services, Operations: []suite.Operation{
		{Op: "replace", Path: "/spec/selector", Value: map[string]string{"app": "vandal"}}}},
}

// edited has a separate MyWeb for each edit, because an operator may limit the rate of corrections for each MyWeb.
func edited(resource string) func(*suite.T) {
	edits := slices.DeleteFunc(slices.Concat(suite.Edits, moreEdits), func(e suite.Edit) bool {
		return e.Resource != resource
	})
	return func(t *suite.T) {
		name := func(n int) string { return fmt.Sprintf("web-%d", n) }
		for n := range edits {
			spec := suite.Sample()
			spec.NodePortNumber = new(t.NodePort())
			t.Create(name(n), spec)
		}
		before, specs := make([]*suite.Children, len(edits)), make([]any, len(edits))
		for n := range edits {
			_, before[n] = converged(t, name(n))
			specs[n] = contentOf(t, resource, name(n))
		}
		mark := t.Mark()
		for n, e := range edits {
			t.EditAs(e, name(n), before[n])
		}
		for n, e := range edits {
			t.Eventually(e.Title+" is restored", patience, func() error {
				now := contentOf(t, resource, name(n))
				if !holds("", now, specs[n]) {
					return suite.Differ(now, specs[n])
				}
				return nil
			})
		}
		for n := range edits {
			_, after := converged(t, name(n))
			t.SameChildren(before[n], after)
		}
		wantMade(t, mark, 0, suite.Kinds...)
		t.StaysQuiet(time.Second)
	}
}

// portAdded adds a port to the Service, as a user who wants metrics does, and edits the operator's own port: first
// its number, which is its key in the API server, then its target.
func portAdded(t *suite.T) {
	spec := suite.Sample()
	spec.NodePortNumber = new(t.NodePort())
	before := t.Children(t.Serve("web", spec))
	ours := before.Service.Spec.Ports[0]
	theirs := corev1.ServicePort{Name: "metrics", Port: 9113, TargetPort: intstr.FromInt32(9113),
		Protocol: corev1.ProtocolTCP}
	if ours.Name == "" {
		t.Set(suite.Services, "web", "/spec/ports/0/name", "http") // two ports need names
	}
	t.Set(suite.Services, "web", "/spec/ports/-", theirs)
	t.StaysQuiet(time.Second)
	theirs = t.Children(t.Web("web")).Service.Spec.Ports[1]
	for path, value := range map[string]any{"port": 81, "targetPort": 8081, "nodePort": t.NodePort()} {
		t.Set(suite.Services, "web", "/spec/ports/0/"+path, value)
		t.Eventually("the edited "+path+" is restored beside the added port", patience, func() error {
			have := t.Children(t.Web("web")).Service.Spec.Ports
			at := slices.IndexFunc(have, func(p corev1.ServicePort) bool { return p.Port == ours.Port })
			if at < 0 {
				return fmt.Errorf("no port is %d: %+v", ours.Port, have)
			}
			have[at].Name = ours.Name
			return suite.Differ(have[at], ours)
		})
		have := t.Children(t.Web("web")).Service.Spec.Ports
		if !slices.Contains(have, theirs) || len(have) != 2 {
			t.Fatalf("the added port %+v was changed: %+v", theirs, have)
		}
	}
	_, after := converged(t, "web")
	t.SameChildren(before, after)
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

func ownersStripped(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before := t.Children(web)
	mark := t.Mark()
	for _, resource := range suite.Kinds {
		t.Edit(resource, "web", `{"metadata":{"ownerReferences":null}}`)
	}
	t.Eventually("the owner references are back", patience, func() error { return controlled(t, web) })
	_, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	t.StaysQuiet(time.Second)
}

// controlled returns an error unless all children exist and are controlled by the MyWeb.
func controlled(t *suite.T, web *suite.Web) error {
	for _, resource := range suite.Kinds {
		o, err := t.Objects(resource).Get(t.Context(), web.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !metav1.IsControlledBy(o, web) {
			return fmt.Errorf("%s has ownerReferences %v, the MyWeb's UID is %s", suite.KindOf[resource],
				o.GetOwnerReferences(), web.UID)
		}
	}
	return nil
}

func labelsStripped(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	for _, resource := range suite.Kinds {
		t.Edit(resource, "web", `{"metadata":{"labels":null}}`)
	}
	t.Eventually("the labels are back", patience, func() error {
		for _, resource := range suite.Kinds {
			was := before.Objects()[suite.KindOf[resource]].GetLabels()
			if err := suite.Differ(t.Read(resource, "web").GetLabels(), was); err != nil {
				return fmt.Errorf("labels of the %s: %w", suite.KindOf[resource], err)
			}
		}
		return nil
	})
	_, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	t.StaysQuiet(time.Second)
}

// secondWriter edits fields that the operator owns for ten seconds.
func secondWriter(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	const fights = 100
	for n := range fights {
		t.Edit(suite.ConfigMaps, "web", fmt.Sprintf(`{"data":{"index.html":"edit %d"}}`, n))
		t.Pause(100 * time.Millisecond)
		if n == fights/2 {
			t.Create("other", suite.Sample())
		}
	}
	wantAlive(t)
	own := slices.DeleteFunc(t.Writes(mark), func(e ledger.Entry) bool {
		return e.Name == "other" || e.FullResource() != suite.ConfigMaps
	})
	if len(own) > fights/2 {
		t.Errorf("%d writes against %d edits in %v: %s", len(own), fights, fights*100*time.Millisecond, suite.Lines(own))
	}
	t.Completed("other")
	t.Eventually("the page is restored when the other one has stopped", patience, func() error {
		want := map[string]any{"index.html": before.ConfigMap.Data["index.html"]}
		return suite.Differ(contentOf(t, suite.ConfigMaps, "web"), want)
	})
	_, after := converged(t, "web")
	t.SameChildren(before, after)
}

// taken creates an object that has a child's name and no owner.
func taken(resource string) func(*suite.T) {
	return func(t *suite.T) {
		t.Make(resource, suite.Unmanaged(resource, "web"))
		before := untouched(t, resource)
		t.Create("web", suite.Sample())
		t.Reported("web", "ResourceConflict", patience)
		t.AwaitQuiet(500 * time.Millisecond)
		t.SetPage("web", "<h1>changed meanwhile</h1>")
		t.Reported("web", "ResourceConflict", patience) // of the new generation
		wantBackoff(t)
		if err := suite.Differ(untouched(t, resource), before); err != nil {
			t.Errorf("the %s of another owner was touched: %v", suite.KindOf[resource], err)
		}
		t.Remove(resource, "web")
		web, _ := converged(t, "web")
		t.Recovered(web)
		wantMade(t, 0, 1, suite.Kinds...)
		t.Warned("web", 0, 1)
	}
}

// untouched is the part of an object that must not change. Controllers write its status and one annotation.
func untouched(t *suite.T, resource string) any {
	o := t.Read(resource, "web")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return []any{o.GetUID(), o.GetLabels(), len(o.GetAnnotations()), o.GetOwnerReferences(), contentOf(t, resource, "web")}
}

// olderChild creates a Deployment as an older version of the operator might have: controlled by the MyWeb, with an
// immutable selector that differs.
func olderChild(t *suite.T) {
	held := hold(t, suite.Deployments)
	web := t.Create("web", suite.Sample())
	t.AwaitFault(held, 1, patience)
	child := suite.Unmanaged(suite.Deployments, "web")
	child.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(web, myweb.MyWebs.GroupVersion().WithKind("MyWeb"))})
	old := t.Make(suite.Deployments, child)
	held.Release()
	web = t.Await("web", "is Degraded, or completed with a new Deployment", patience, func(w *suite.Web) bool {
		return w.Is() || w.Condition("Degraded").Status == metav1.ConditionTrue
	})
	if web.Is() {
		if _, c := converged(t, "web"); c.Deployment.UID == old.GetUID() {
			t.Errorf("completed, but the Deployment still selects %v", c.Deployment.Spec.Selector.MatchLabels)
		}
		return
	}
	wantBackoff(t)
	if web = t.Web("web"); web.Status.Completed {
		t.Errorf("completed is true, but the Deployment cannot be what it should")
	}
	if now := t.Read(suite.Deployments, "web"); now.GetUID() != old.GetUID() {
		t.Errorf("reported as a conflict, and replaced all the same")
	}
	t.Remove(suite.Deployments, "web")
	converged(t, "web")
}

// recreated holds the first write of a child, and meanwhile deletes and recreates the MyWeb.
func recreated(resource string) func(*suite.T) {
	return func(t *suite.T) {
		held := hold(t, resource)
		old := t.Create("web", suite.Sample())
		t.AwaitFault(held, 1, patience)
		t.Delete("web")
		t.AwaitGone(suite.Resource, "web", 0)
		spec := suite.Sample()
		spec.PageContentHTML = new("<h1>Another</h1>")
		web := t.Create("web", spec)
		held.Release()
		t.Eventually("the children are those of the new MyWeb", patience, func() error { return controlled(t, web) })
		converged(t, "web")
		if web.UID == old.UID {
			t.Errorf("the lab made the same MyWeb again")
		}
		t.StaysQuiet(time.Second)
	}
}
