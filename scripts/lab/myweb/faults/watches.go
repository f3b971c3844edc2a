package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// watches are rows 8 to 12: faults of the operator's watches. The watches cover all namespaces, so the whole operator
// is disturbed.
func watches() []suite.Check {
	checks := []suite.Check{
		{ID: "fault/08-ended", Run: gap(func(s *proxy.Stream) error { s.End(); return nil }),
			Title: "watches that end are resumed; changes in the gap are seen"},
		{ID: "fault/08-cut", Run: gap(func(s *proxy.Stream) error { s.Cut(); return nil }),
			Title: "watches that break are opened again; changes in the gap are seen"},
		{ID: "fault/08-half-open", Run: gap(nil),
			Title: "while watches hang, nothing is destroyed; when they continue, the operator handles the withheld events"},
		{ID: "fault/09-gone", Run: gap((*proxy.Stream).Expire),
			Title: "after 410 Gone all is listed again, and the operator notices a child or MyWeb that was deleted meanwhile"},
		{ID: "fault/10-mywebs-unseen", Run: notSeen(suite.Resource),
			Title: "an operator that does not see its own status writes does not repeat them"},
		{ID: "fault/11-old-list", Run: oldSnapshot(true),
			Title: "an operator that starts with an old list destroys nothing for an old MyWeb, and converges"},
		{ID: "fault/11-old-watch", Run: oldSnapshot(false),
			Title: "an operator whose initial watch reports an old state destroys nothing for an old MyWeb, and converges"},
		{ID: "fault/12-unobserved-change", Run: unobserved,
			Title: "replicas 1, 3, 2 with the 3 unseen are the same as 1, 2; and so is the way down"},
	}
	for _, resource := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "fault/10-" + short(resource) + "-unseen", Run: notSeen(resource),
				Title: "an operator that does not see the " + suite.KindOf[resource] + " that it made makes no second one"})
	}
	for i := range checks {
		checks[i].Alone = true
	}
	return checks
}

// freeze withholds the events of the operator's watches: of the given resources, or of all.
func freeze(t *suite.T, resources ...string) *proxy.Fault {
	return t.Everywhere(proxy.Rule{
		Match: ledger.Match{Verbs: []string{wire.Watch}, Resources: resources}, Do: proxy.Freeze()})
}

// renew makes the next check begin with a process whose watches are undisturbed, because client-go's backoff would
// last.
func renew(t *suite.T) {
	t.Cleanup(func(context.Context) { t.Operator.Kill() })
}

// gap withholds events while children and a MyWeb are deleted, and a MyWeb changes. Then it calls end for each watch;
// without end the watches continue.
func gap(end func(*proxy.Stream) error) func(*suite.T) {
	return func(t *suite.T) {
		renew(t)
		t.Create("gone", suite.Sample())
		before := t.Children(t.Serve("web", suite.Sample()))
		t.Completed("gone")
		t.AwaitQuiet(300 * time.Millisecond)
		t.Pause(time.Second) // client-go treats a watch that ends sooner as broken
		mark := t.Mark()
		f := freeze(t)
		t.AwaitFault(f, 1, time.Second)
		t.Delete("gone")
		t.Gone("gone")
		t.Remove(suite.ConfigMaps, "web")
		t.SetPage("web", "<h1>after the gap</h1>")
		t.Pause(2 * time.Second)
		if changes := t.Changes(mark); len(changes) > 0 {
			t.Errorf("%d changes by an operator that receives no events: %s", len(changes), suite.Lines(changes))
		}
		if end != nil {
			f.Remove()
			for _, s := range t.Fixture.Proxy.Streams(t.Operator.Requests()) {
				t.Must(end(s), "end a watch")
			}
		} else {
			f.Release()
		}
		t.Served("web", "follows the change", patience)
		_, after := converged(t, "web")
		t.SameChildren(before, after, "ConfigMap")
		// For the deleted MyWeb, an operator that sees the children's deletion first recreates them, and the garbage
		// collector deletes them. So this counts only the children of web, of which only the ConfigMap is missing.
		for resource, want := range map[string]int{suite.ConfigMaps: 1, suite.Deployments: 0, suite.Services: 0} {
			if got := madeOf(t, mark, resource, "web"); got != want {
				t.Errorf("%s: %d made, wanted %d: %s", resource, got, want, suite.Lines(t.Writes(mark)))
			}
		}
		wantNoDelete(t, mark)
		t.Gone("gone")
		t.StaysQuiet(time.Second)
		wantAlive(t)
		wantNoPanic(t, true)
	}
}

// notSeen freezes the watch of one kind, creates a MyWeb, and changes it twice.
func notSeen(resource string) func(*suite.T) {
	return func(t *suite.T) {
		renew(t)
		if resource == suite.Resource { // the operator would not see the MyWeb itself
			t.Serve("web", suite.Sample())
		}
		mark := t.Mark()
		f := freeze(t, resource)
		t.AwaitFault(f, 1, time.Second)
		find := func() {}
		if resource == suite.Resource {
			find = lose(t)
		} else {
			t.Create("web", suite.Sample())
			t.Eventually("the "+suite.KindOf[resource]+" is made", patience, func() error {
				_, err := t.Objects(resource).Get(t.Context(), "web", metav1.GetOptions{})
				return err
			})
		}
		t.Patch("web", `{"spec":{"replicas":2}}`)
		t.Pause(500 * time.Millisecond)
		t.SetPage("web", "<h1>changed</h1>")
		wantBackoff(t)
		what := resource
		if what == suite.Resource {
			what = status
		}
		if changes := t.Fixture.Ledger.Entries(ledger.Match{
			Users: []string{t.Operator.User.Name}, Namespace: t.Namespace, After: mark,
			Resources: []string{what}, Where: ledger.Changes.Matches}); len(changes) > 3 {
			t.Errorf("%d changes of an unseen object, for a MyWeb that was created and changed twice: %s", len(changes),
				suite.Lines(changes))
		}
		f.Release()
		find()
		converged(t, "web")
		if resource != suite.Resource {
			wantMade(t, mark, 1, suite.Kinds...)
		}
		t.StaysQuiet(time.Second)
		wantAlive(t)
		wantNoPanic(t, true)
	}
}

// lose deletes the Deployment, and keeps the pods of the next Deployment from being scheduled until the check ends or
// the returned function is called. Until then, the operator's status differs from the frozen MyWeb that it sees.
func lose(t *suite.T) (find func()) {
	find = func() { t.Must(t.Fixture.Signal(fixture.Scheduler, syscall.SIGCONT), "let the scheduler go on") }
	t.Must(t.Fixture.Signal(fixture.Scheduler, syscall.SIGSTOP), "stop the scheduler")
	t.Cleanup(func(context.Context) { find() })
	old := t.Read(suite.Deployments, "web").GetUID()
	t.Remove(suite.Deployments, "web")
	t.Eventually("a Deployment is made again", patience, func() error { return t.Another(suite.Deployments, "web", old) })
	return find
}

// unobserved changes a MyWeb twice while the operator gets no events, and ends the watch so that it sees only the
// last state.
func unobserved(t *suite.T) {
	renew(t)
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	for _, replicas := range [][2]int{{3, 2}, {3, 1}} {
		was := t.Read(suite.Deployments, "web").GetGeneration()
		t.Pause(time.Second) // client-go treats a watch that ends sooner as broken
		f := freeze(t, suite.Resource)
		t.AwaitFault(f, 1, time.Second)
		for _, n := range replicas {
			t.Patch("web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
		}
		f.Remove()
		for _, s := range t.Fixture.Proxy.Streams(ledger.Match{
			Users: []string{t.Operator.User.Name}, Resources: []string{suite.Resource}}) {
			t.Must(s.Expire(), "end a watch")
		}
		_, after := converged(t, "web")
		t.SameChildren(before, after)
		if got := after.Deployment.Generation - was; got != 1 {
			t.Errorf("the Deployment was changed %d times, wanted once: %s", got, suite.Lines(t.Writes(mark)))
		}
	}
	wantMade(t, mark, 0, suite.Kinds...)
	t.StaysQuiet(time.Second)
}

// oldSnapshot starts the operator with MyWebs from before one of them was deleted and recreated with its name. Either
// a list returns the old state, and the watch after it hangs, or the initial events of a watch return it.
func oldSnapshot(list bool) func(*suite.T) {
	return func(t *suite.T) {
		renew(t)
		first := t.Serve("web", suite.Sample())
		past, err := t.Fixture.Dynamic.Resource(myweb.MyWebs).List(t.Context(), metav1.ListOptions{})
		t.Must(err, "list the MyWebs")
		t.Delete("web")
		t.Gone("web")
		spec := suite.Sample()
		spec.PageContentHTML = new("<h1>of now</h1>")
		t.AwaitGone(suite.Resource, "web", 0)
		web := t.Serve("web", spec)
		before := t.Children(web)
		t.Operator.Kill()

		env := t.Operator.Env
		t.Operator.Env = append([]string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", !list)}, env...)
		t.Cleanup(func(context.Context) { t.Operator.Env = env })
		mark := t.Mark()
		stale := t.Everywhere(proxy.Rule{
			Match: ledger.Match{Verbs: []string{wire.List, wire.Watch}, Resources: []string{suite.Resource}},
			Do:    proxy.Call(retell(past))})
		t.Must(t.Operator.Restart(t.Context()), "start the operator with an old snapshot")
		t.Pause(3 * time.Second)
		after := t.Children(web)
		t.SameChildren(before, after)
		for kind, o := range before.Objects() {
			if err := suite.Differ(after.Objects()[kind].GetOwnerReferences(), o.GetOwnerReferences()); err != nil {
				t.Errorf("owner references of the %s: %v", kind, err)
			}
		}
		if err := suite.Differ(after.ConfigMap.Data, before.ConfigMap.Data); err != nil {
			t.Errorf("the current page was changed for the old MyWeb (UID %s): %v", first.UID, err)
		}
		wantMade(t, mark, 0, suite.Kinds...)
		stale.Release()
		for _, s := range t.Fixture.Proxy.Streams(ledger.Match{
			Users: []string{t.Operator.User.Name}, Resources: []string{suite.Resource}}) {
			s.End() // an answer by a rule never continues by itself
		}
		t.SetPage("web", "<h1>after it</h1>")
		_, after = converged(t, "web")
		t.SameChildren(before, after)
		wantMade(t, mark, 0, suite.Kinds...)
		t.StaysQuiet(time.Second)
		wantNoPanic(t, true)
	}
}

// retell answers with an old state: a list, and holds the watches after it; or the initial events of a watch.
func retell(past *unstructured.UnstructuredList) func(*proxy.Exchange) proxy.Action {
	var listed atomic.Bool
	return func(x *proxy.Exchange) proxy.Action {
		if x.Entry().Verb == wire.List {
			listed.Store(true)
			body, err := json.Marshal(past)
			if err != nil {
				panic(err) // it came as JSON
			}
			return proxy.Reply(proxy.Answer{Code: http.StatusOK, Body: body})
		}
		if listed.Load() {
			return proxy.Hold()
		}
		var body []byte
		for i := range past.Items {
			body = append(body, event("ADDED", &past.Items[i])...)
		}
		end := &unstructured.Unstructured{}
		end.SetAPIVersion(past.Items[0].GetAPIVersion())
		end.SetKind(past.Items[0].GetKind())
		end.SetResourceVersion(past.GetResourceVersion())
		end.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
		return proxy.Reply(proxy.Answer{Code: http.StatusOK, Body: append(body, event("BOOKMARK", end)...), Open: true})
	}
}

func event(kind string, object *unstructured.Unstructured) []byte {
	data, err := wire.Values.Encode(kind, object)
	if err != nil {
		panic(err) // an object like any other
	}
	return data
}
