package checks

import (
	"context"
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// watches are rows 8 to 12: faults of the operator's watches. The watches cover all namespaces, so the whole operator
// is disturbed.
func watches() []suite.Check {
	checks := []suite.Check{
		{ID: "fault/08-ended", Run: gap(ended),
			Title: "watches that end are resumed; changes in the gap are seen"},
		{ID: "fault/08-cut", Run: gap(func(s *proxy.Stream) error { s.Cut(); return nil }),
			Title: "watches that break are opened again; changes in the gap are seen"},
		{ID: "fault/08-half-open", Run: gap(nil),
			Title: "while watches hang, nothing is destroyed; when they continue, the operator handles the withheld events"},
		{ID: "fault/09-gone", Run: gap((*proxy.Stream).Expire),
			Title: "after 410 Gone all is listed again, and the operator notices a child or MyWeb that was deleted meanwhile"},
		{ID: "fault/10-mywebs-unseen", Run: mywebsUnseen,
			Title: "an operator that does not see its own status writes does not repeat them"},
		{ID: "fault/10-mywebs-slow-rollout", Run: slowRollout,
			Title: "a slow rollout costs 3 writes of children and 2 of status, none refused, also while the operator does not " +
				"see its first status write"},
		{ID: "fault/11-old-list", Run: oldSnapshot(true),
			Title: "an operator that starts with an old list destroys nothing for an old MyWeb, and converges"},
		{ID: "fault/11-old-watch", Run: oldSnapshot(false),
			Title: "an operator whose initial watch reports an old state destroys nothing for an old MyWeb, and converges"},
		{ID: "fault/12-unobserved-change", Run: unobserved,
			Title: "replicas 1, 3, 2 with the 3 unseen are the same as 1, 2; and so is the way down"},
	}
	for _, resource := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "fault/10-" + short(resource) + "-unseen", Run: childNotSeen(resource),
				Title: "an operator that does not see the " + suite.KindOf[resource] + " that it made makes no second one"})
	}
	for i := range checks {
		checks[i].Alone = true
	}
	return checks
}

// freeze withholds the events of the operator's watches: of the given resources, or of all.
func freeze(t *suite.T, resources ...string) *proxy.Fault {
	f := t.Everywhere(proxy.Rule{
		Match: ledger.Match{Verbs: []string{wire.Watch}, Resources: resources}, Do: proxy.Freeze()})
	t.AwaitFault(f, 1, time.Second)
	return f
}

// endWatches calls end for each of the operator's watches: of the given resources, or of all.
func endWatches(t *suite.T, end func(*proxy.Stream) error, resources ...string) {
	match := t.Operator.Requests()
	match.Resources = resources
	for _, s := range t.Fixture.Proxy.Streams(match) {
		t.Must(end(s), "end a watch")
	}
}

func ended(s *proxy.Stream) error {
	s.End()
	return nil
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
		t.Remove(suite.Resource, "gone")
		t.Gone("gone")
		t.Remove(suite.ConfigMaps, "web")
		t.SetPage("web", "<h1>after the gap</h1>")
		t.Pause(2 * time.Second)
		if changes := t.Changes(mark); len(changes) > 0 {
			t.Errorf("%d changes by an operator that receives no events: %s", len(changes), suite.Lines(changes))
		}
		if end != nil {
			f.Remove()
			endWatches(t, end)
		} else {
			f.Release()
		}
		t.Served("web", "follows the change", patience)
		_, after := converged(t, "web")
		t.SameChildren(before, after, "ConfigMap")
		// For the deleted MyWeb, an operator that sees the children's deletion first recreates them, and the garbage
		// collector deletes them. So this counts only the children of web, of which only the ConfigMap is missing.
		for resource, want := range map[string]int{suite.ConfigMaps: 1, suite.Deployments: 0, suite.Services: 0} {
			if got := made(t, mark, resource, "web"); got != want {
				t.Errorf("%s: %d made, wanted %d: %s", resource, got, want, suite.Lines(t.Writes(mark)))
			}
		}
		wantNoDelete(t, mark)
		t.Gone("gone")
		t.StaysQuiet(time.Second)
		wantSound(t)
	}
}

// childNotSeen freezes the watch of a kind of children, creates a MyWeb, and changes it twice.
func childNotSeen(resource string) func(*suite.T) {
	return func(t *suite.T) {
		renew(t)
		mark, f := t.Mark(), freeze(t, resource)
		t.Create("web", suite.Sample())
		t.Eventually("the "+suite.KindOf[resource]+" is made", patience, func() error {
			return t.Another(resource, "web", "")
		})
		changedUnseen(t, mark, resource)
		f.Release()
		converged(t, "web")
		wantMade(t, mark, 1, suite.Kinds...)
		t.StaysQuiet(time.Second)
		wantSound(t)
	}
}

// mywebsUnseen freezes the watch of the MyWebs. It deletes the Deployment, and keeps the pods of the next Deployment
// from being scheduled, so that the operator's status differs from the frozen MyWeb that it sees.
func mywebsUnseen(t *suite.T) {
	renew(t)
	t.Serve("web", suite.Sample())
	mark, f := t.Mark(), freeze(t, suite.Resource)
	resume := t.Stop(fixture.Scheduler)
	old := t.Read(suite.Deployments, "web").GetUID()
	t.Remove(suite.Deployments, "web")
	t.Eventually("a Deployment is made again", patience, func() error { return t.Another(suite.Deployments, "web", old) })
	changedUnseen(t, mark, status)
	f.Release()
	resume()
	converged(t, "web")
	t.StaysQuiet(time.Second)
	wantSound(t)
}

// slowly is longer than an operator may wait before it reports the part of a rollout that has stalled.
const slowly = 12 * time.Second

// slowRollout withholds the event of the operator's first status write, and keeps the pod from its node. So the
// rollout ends while the operator's cache lacks the write, and a status that is computed from this cache is refused.
func slowRollout(t *suite.T) {
	renew(t)
	release := t.Gate()
	var frozen *proxy.Fault
	t.Rule(proxy.Rule{Match: toWrite(status), Times: 1, Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
		frozen = t.Everywhere(proxy.Rule{Match: ledger.Match{Verbs: []string{wire.Watch},
			Resources: []string{suite.Resource}}, Do: proxy.Freeze()})
		return proxy.Action{}
	})})
	t.Create("web", replicas(1))
	t.Await("web", "has a status while no pod runs", 0, func(w *suite.Web) bool {
		return w.Status.ObservedGeneration == w.Generation && !w.Status.Completed
	})
	t.Pause(slowly)
	release()
	t.Eventually("the pod of the Deployment runs", patience, func() error {
		return suite.RolledOut(t.Children(t.Web("web")).Deployment)
	})
	t.Pause(3 * time.Second) // the Deployment's event is delivered, the MyWeb's is not
	frozen.Release()
	t.Completed("web")
	t.AwaitQuiet(quiet)
	writes := t.Writes(0)
	wantMade(t, 0, 1, suite.Kinds...)
	if len(writes) != 5 || len(accepted(writes)) != 5 {
		t.Errorf("expected 3 writes of children and 2 of status, none of them refused; but the operator sent %s:%s",
			suite.Count(len(writes), "write"), suite.Lines(writes))
	}
}

// changedUnseen changes a MyWeb twice. The operator must not write again and again what it does not see.
func changedUnseen(t *suite.T, mark int, resource string) {
	t.Patch("web", `{"spec":{"replicas":2}}`)
	t.Pause(500 * time.Millisecond)
	t.SetPage("web", "<h1>changed</h1>")
	wantBackoff(t)
	if changes := suite.About(t.Changes(mark), resource); len(changes) > 3 {
		t.Errorf("%d changes of an unseen object, for a MyWeb that was created and changed twice: %s", len(changes),
			suite.Lines(changes))
	}
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
		for _, n := range replicas {
			t.Patch("web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
		}
		f.Remove()
		endWatches(t, (*proxy.Stream).Expire, suite.Resource)
		_, after := converged(t, "web")
		t.SameChildren(before, after)
		if got := after.Deployment.Generation - was; got != 1 {
			t.Errorf("the Deployment was changed %d times, wanted once: %s", got, suite.Lines(t.Writes(mark)))
		}
	}
	inPlace(t, before, mark, 0)
}
