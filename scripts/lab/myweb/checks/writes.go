package checks

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// writeChecks are the checks of the writes of the operator.
var writeChecks = []suite.Check{
	{ID: "fault/03-answer-lost", Fast: true,
		Run:   once(proxy.Rule{Match: committed, Moment: proxy.After, Times: 1, Do: proxy.Drop()}, written...),
		Title: "a child or status that was written, but whose answer was lost, is recognized; nothing is created twice"},
	{ID: "fault/03-error-after-commit",
		Run:   once(proxy.Rule{Match: committed, Moment: proxy.After, Times: 1, Do: proxy.Refuse(500, 0)}, written...),
		Title: "a write that succeeded but was answered with 500 is recognized; nothing is created twice"},
	{ID: "fault/03-answer-lost-update", Run: answerLostUpdate,
		Title: "a change whose answer is lost is made once, and reported"},
	{ID: "fault/04-dropped", Fast: true, Run: once(proxy.Rule{Times: 2, Do: proxy.Drop()}, written...),
		Title: "a write that never arrived is sent again"},
	{ID: "fault/04-unreachable", Run: failing(proxy.Drop(), suite.Kinds...),
		Title: "while no write arrives, the operator retries with backoff; it recovers"},
	{ID: "fault/04-duplicated", Run: once(proxy.Rule{Times: 1, Do: proxy.Duplicate()}, written...),
		Title: "a write that arrives twice makes one object"},
	{ID: "fault/05-conflict-children", Run: conflict(5, suite.Kinds...),
		Title: "five conflicts on each child are tried again, never shown as a failure"},
	{ID: "fault/05-conflict-status", Fast: true, Run: conflictStatus,
		Title: "five conflicts on the status are tried again, never shown as a failure"},
	{ID: "fault/05-conflict-true", Run: trueConflict,
		Title: "the status is reported even when another client changes the MyWeb before each status write"},
	{ID: "fault/06-429-retry-after-children",
		Run:   retryAfter(429, suite.Kinds...),
		Title: "a 429 with Retry-After is waited for before the child is sent again"},
	{ID: "fault/06-503-retry-after-status", Run: retryAfter(503, status),
		Title: "a 503 with Retry-After is waited for before the status is sent again"},
	{ID: "fault/07-slow-status", Alone: true, Run: slow(status),
		Title: "while status writes of three MyWebs take 2 s more, a fourth need not wait for all of them"},
	{ID: "fault/07-slow-writes", Alone: true,
		Run:   slow(written...),
		Title: "while all writes of three MyWebs take 2 s more, a fourth need not wait for all of them"},
}

// refusals are the behaviours that follow answers that ask for a retry.
func refusals() (checks []suite.Check) {
	for _, r := range []struct {
		id, what   string
		code       int
		retryAfter time.Duration
	}{
		{"500", "an internal error (500)", 500, 0},
		{"503", "an unavailable server (503)", 503, 0},
		{"429", "throttling (429)", 429, 0},
		{"429-retry-after", "throttling (429) with Retry-After", 429, time.Second},
	} {
		checks = append(checks, suite.Check{ID: "behaviour/13-refused-" + r.id, Fast: r.id == "500",
			Title: r.what + " is tried again, and is not an error",
			Run:   once(proxy.Rule{Times: 2, Do: proxy.Refuse(r.code, r.retryAfter)}, written...)})
	}
	return checks
}

// answers are the checks of each answer that asks for a retry.
func answers() (checks []suite.Check) {
	for _, code := range []int{500, 503, 504, 429} {
		checks = append(checks,
			suite.Check{ID: fmt.Sprintf("fault/06-%d-children", code), Fast: code == 500,
				Title: fmt.Sprintf("children that are answered with %d are tried again with backoff, never shown as a failure",
					code),
				Run: failing(proxy.Refuse(code, 0), suite.Kinds...)},
			suite.Check{ID: fmt.Sprintf("fault/06-%d-status", code), Fast: code == 503,
				Title: fmt.Sprintf("a status that is answered with %d is tried again with backoff", code),
				Run:   failing(proxy.Refuse(code, 0), status)})
	}
	return checks
}

// each adds a rule for each resource.
func each(t *suite.T, r proxy.Rule, resources ...string) {
	for _, resource := range resources {
		if resource == status && !t.Reports() {
			continue // no operator writes it
		}
		r.Match.Verbs, r.Match.Resources = wire.Writes, []string{resource}
		t.Rule(r)
	}
}

// servedAnyway creates a MyWeb whose writes a rule disturbs, and expects that it is served as without a fault.
func servedAnyway(t *suite.T, meanwhile func()) {
	history := t.Follow()
	t.Create("web", suite.Sample())
	meanwhile()
	web, _ := converged(t, "web")
	wantMade(t, 0, 1, suite.Kinds...)
	t.StaysQuiet(time.Second)
	history.NeverDegraded(web)
	wantNoPanic(t, false)
}

// refusedOnce refuses the first write of each resource. A program that drops the error gets no event that would call its
// reconcile again: nothing was written.
func refusedOnce(t *suite.T) {
	each(t, proxy.Rule{Times: 1, Do: proxy.Refuse(500, 0)}, written...)
	t.Create("web", suite.Sample())
	for _, k := range suite.Kinds {
		t.Reaction("the "+suite.KindOf[k]+" is created", 0, func() error { return t.Another(k, "web", "") })
	}
	t.Completed("web")
}

// refusedRestore refuses a write in steady state: no other write succeeds, so no event calls a reconcile again. Then it
// refuses the status of a changed MyWeb. A program that changes children has events that call a reconcile again.
func refusedRestore(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	t.Rule(proxy.Rule{Match: toWrite(suite.ConfigMaps), Times: 1, Do: proxy.Refuse(500, 0)})
	t.Remove(suite.ConfigMaps, "web")
	t.Reaction("the ConfigMap is back", 0, func() error {
		return t.Another(suite.ConfigMaps, "web", before.ConfigMap.UID)
	})
	if !t.Reports() {
		return
	}
	t.AwaitQuiet(quiet)
	t.Rule(proxy.Rule{Match: toWrite(status), Times: 1, Do: proxy.Refuse(500, 0)})
	t.Patch("web", `{"spec":{"replicas":2}}`)
	t.Reacts("web", "has a status of its newest generation", func(w *suite.Web) bool {
		return w.Status.ObservedGeneration == w.Generation
	})
}

// once disturbs the first writes of each of some resources.
func once(r proxy.Rule, resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		each(t, r, resources...)
		servedAnyway(t, func() {})
	}
}

func answerLostUpdate(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	each(t, proxy.Rule{Match: committed, Moment: proxy.After, Times: 1, Do: proxy.Drop()},
		suite.ConfigMaps, suite.Deployments)
	t.SetPage("web", "<h1>changed</h1>")
	_, after := inPlace(t, before, mark, 0)
	if got := after.Deployment.Generation - before.Deployment.Generation; got != 1 {
		t.Errorf("the Deployment was changed %d times, wanted once: %s", got, suite.Lines(t.Writes(mark)))
	}
}

// conflict answers the first writes of each of some resources with 409. It changes existing objects: a create that is
// answered with 409 would mean that the object exists.
func conflict(times int, resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		history := t.Follow()
		before := t.Children(t.Serve("web", suite.Sample()))
		each(t, proxy.Rule{Times: times, Do: proxy.Refuse(409, 0)}, resources...)
		mark := t.Mark()
		t.Patch("web", fmt.Sprintf(`{"spec":{"pageContentHtml":"changed","nodePortNumber":%d}}`, t.NodePort()))
		web, _ := inPlace(t, before, mark, 0)
		history.NeverDegraded(web)
	}
}

// conflictStatus refuses the status of a new MyWeb, and then of a change that causes fewer events than conflicts: each
// event would be another reason to write the status.
func conflictStatus(t *suite.T) {
	five := proxy.Rule{Times: 5, Do: proxy.Refuse(409, 0)}
	once(five, status)(t)
	history, port := t.Follow(), t.NodePort()
	each(t, five, status)
	t.Patch("web", fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, port))
	web, children := converged(t, "web")
	wantPort(t, web, children, port)
	history.NeverDegraded(web)
}

// trueConflict changes the MyWeb before each of the operator's first three status writes.
func trueConflict(t *suite.T) {
	history := t.Follow()
	n := 0
	t.Rule(proxy.Rule{Match: toWrite(status), Times: 3, Do: proxy.Call(func(x *proxy.Exchange) proxy.Action {
		n++
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"lab.example.com/touched":"%d"}}}`, n)
		_, err := t.Objects(suite.Resource).
			Patch(x.Context(), "web", types.MergePatchType, note, metav1.PatchOptions{})
		if err != nil {
			t.Errorf("touch the MyWeb: %v", err)
		}
		return proxy.Action{}
	})})
	t.Create("web", suite.Sample())
	t.Served("web", "is completed", patience)
	t.Patch("web", `{"spec":{"replicas":2}}`)
	web, _ := converged(t, "web")
	if web.Annotations["lab.example.com/touched"] == "" {
		t.Errorf("the annotation of another client is gone: %v", web.Annotations)
	}
	wantMade(t, 0, 1, suite.Kinds...)
	history.NeverDegraded(web)
}

// failing disturbs all writes to resources for a window: client-go does not repeat a write by itself.
func failing(do proxy.Action, resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		f := t.Rule(proxy.Rule{Match: toWrite(resources...), Do: do})
		servedAnyway(t, func() {
			t.AwaitFault(f, 1, patience)
			wantBackoff(t)
			if f.Fired() < 2 {
				t.Errorf("%d tries in %v: it was given up", f.Fired(), window)
			}
			f.Release()
		})
	}
}

// retryAfter answers two writes with a code and asks for a pause of a second.
func retryAfter(code int, resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		t.Rule(proxy.Rule{Match: toWrite(resources...), Times: 2, Do: proxy.Refuse(code, time.Second)})
		servedAnyway(t, func() {})
		tries := suite.About(t.Writes(0), resources...)
		for n, e := range tries[:len(tries)-1] {
			next := slices.IndexFunc(tries[n+1:], func(o ledger.Entry) bool { return o.FullResource() == e.FullResource() })
			if e.Code != code || next < 0 {
				continue
			}
			if gap := tries[n+1+next].Start.Sub(e.Start); gap < 900*time.Millisecond {
				t.Errorf("sent again after %v, asked to wait for 1 s: %s", gap.Round(time.Millisecond), suite.Lines(tries))
			}
		}
	}
}

// slow delays writes of some MyWebs by 2 s. An operator with one worker serves the quick MyWeb after all of them.
func slow(resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		match := toWrite(resources...)
		match.Where = func(e ledger.Entry) bool { return e.Name != "quick" }
		t.Rule(proxy.Rule{Match: match, Do: proxy.Delay(2 * time.Second)})
		slow := []string{"slow-0", "slow-1", "slow-2"} // more than a single worker handles before the quick MyWeb
		for _, name := range append(slow, "quick") {
			t.Create(name, suite.Sample())
		}
		t.Served("quick", "is completed beside the slow ones", patience)
		for _, name := range slow {
			converged(t, name)
		}
		wantMade(t, 0, len(slow)+1, suite.Kinds...)
		var last time.Time // the start of the last write for the quick MyWeb
		answered := map[string]time.Time{}
		for _, e := range t.Writes(0) {
			if e.Name == "quick" {
				last = e.Start
			} else if answered[e.Name].IsZero() && e.FullResource() == resources[0] {
				answered[e.Name] = e.Start.Add(e.Took)
			}
		}
		if !slices.ContainsFunc(slow, func(name string) bool { return !answered[name].Before(last) }) {
			t.Errorf("the quick MyWeb had to wait for every one of %d slow ones", len(slow))
		}
		t.StaysQuiet(time.Second)
	}
}
