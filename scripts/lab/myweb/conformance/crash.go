package conformance

import (
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/sequence"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// refusals are the checks of answers that ask for a retry.
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
		checks = append(checks, suite.Check{ID: "behaviour/13-refused-" + r.id, Group: "13", Fast: r.id == "500",
			Title: r.what + " is tried again, and is not an error",
			Run:   func(t *suite.T) { refusedWrites(t, r.code, r.retryAfter) }})
	}
	return checks
}

var (
	childWrites  = ledger.Match{Verbs: wire.Writes, Resources: suite.Kinds}
	statusWrites = ledger.Match{Verbs: wire.Writes, Resources: []string{suite.Resource, suite.StatusResource}}
)

// killAfter kills the operator when the n-th matching write is done, before the operator receives the response.
func killAfter(t *suite.T, n int, m ledger.Match) *proxy.Fault {
	return t.Rule(sequence.KillAfter(n, m, t.Operator.Kill))
}

// dies waits for the kill and restarts the operator.
func dies(t *suite.T, f *proxy.Fault) {
	t.AwaitFault(f, 1, 20*time.Second)
	t.Eventually("the operator is killed", 0, func() error {
		if t.Operator.Running() {
			return fmt.Errorf("process %d runs", t.Operator.Process().PID())
		}
		return nil
	})
	t.Must(t.Operator.Restart(t.Context()), "start the operator again")
}

// madeOnce fails the check when a child was created more than once, or when there were too many writes: a crash may
// cost one write more than an undisturbed run.
func madeOnce(t *suite.T, web *suite.Web, mark, children, status int) {
	c := t.Children(web)
	changes := t.Changes(mark)
	for _, k := range suite.Kinds {
		for _, e := range suite.About(changes, k) {
			if e.Verb == wire.Delete || e.UID != string(c.Objects()[suite.KindOf[k]].GetUID()) {
				t.Errorf("the %s was made, or deleted, more than once: %s, UID %s; it is %s", suite.KindOf[k], e, e.UID,
					c.Objects()[suite.KindOf[k]].GetUID())
			}
		}
	}
	if all := suite.About(changes, suite.Kinds...); len(all) > children+1 {
		t.Errorf("%d changes of children, %d are enough without a crash:\n%s", len(all), children, suite.Lines(all))
	}
	if all := suite.About(changes, suite.Resource, suite.StatusResource); len(all) > status+1 {
		t.Errorf("%d changes of status, %d are enough without a crash:\n%s", len(all), status, suite.Lines(all))
	}
}

// killedAfter kills the operator right after the nth matching write.
func killedAfter(nth int, writes ledger.Match) func(*suite.T) {
	return func(t *suite.T) {
		h, mark := t.Follow(), t.Mark()
		f := killAfter(t, nth, writes)
		t.Create("web", suite.Sample())
		dies(t, f)
		web := t.Completed("web")
		t.AwaitQuiet(quiet)
		madeOnce(t, web, mark, 3, 2)
		h.NeverDegraded(web)
	}
}

func killedInUpdate(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	h, before, mark := t.Follow(), t.Children(web), t.Mark()
	f := killAfter(t, 1, childWrites)
	const page, next = "<h1>Next</h1>", "nginx:1.29"
	t.Patch("web", `{"spec":{"pageContentHtml":"`+page+`","image":"`+next+`"}}`)
	dies(t, f)
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	if have := after.ConfigMap.Data["index.html"]; have != page {
		t.Errorf("index.html is %q, want %q", have, page)
	}
	if have := t.Image(after.Deployment); have != next {
		t.Errorf("the image is %s, want %s", have, next)
	}
	t.SameChildren(before, after)
	madeOnce(t, web, mark, 2, 2)
	h.NeverDegraded(web)
}

func refusedWrites(t *suite.T, code int, retryAfter time.Duration) {
	h := t.Follow()
	t.Rule(proxy.Rule{Match: childWrites, Times: 2, Do: proxy.Refuse(code, retryAfter)})
	if t.Reports() {
		t.Rule(proxy.Rule{Match: statusWrites, Times: 1, Do: proxy.Refuse(code, retryAfter)})
	}
	t.Create("web", suite.Sample())
	web := t.Completed("web")
	t.AwaitQuiet(quiet)
	t.Children(web)
	h.NeverDegraded(web)
}

// conflict refuses changes of existing objects: a create is never a conflict.
func conflict(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	h, before := t.Follow(), t.Children(web)
	changes := []string{wire.Update, wire.Patch, wire.Apply}
	t.Rule(proxy.Rule{Match: ledger.Match{Verbs: changes, Resources: childWrites.Resources}, Times: 2,
		Do: proxy.Refuse(409, 0)})
	if t.Reports() {
		t.Rule(proxy.Rule{Match: ledger.Match{Verbs: changes, Resources: statusWrites.Resources}, Times: 1,
			Do: proxy.Refuse(409, 0)})
	}
	t.Patch("web", `{"spec":{"image":"nginx:1.29"}}`)
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	if have := t.Image(after.Deployment); have != "nginx:1.29" {
		t.Errorf("the image is %s, want nginx:1.29", have)
	}
	t.SameChildren(before, after)
	h.NeverDegraded(web)
}

func backoff(t *suite.T) {
	h := t.Follow()
	f := t.Rule(proxy.Rule{Match: childWrites, Do: proxy.Refuse(500, 0)})
	t.Create("web", suite.Sample())
	t.AwaitFault(f, 1, 20*time.Second)
	t.Pause(calm)
	for _, k := range suite.Kinds { // some operators try all three suite.Kinds in each reconcile
		if tries := suite.About(t.Writes(0), k); len(tries) > hotLoop {
			t.Errorf("%d tries to write the %s in %v, with backoff there are less than %d", len(tries), suite.KindOf[k],
				calm, hotLoop)
		}
	}
	f.Release()
	web := t.Completed("web")
	h.NeverDegraded(web)
}
