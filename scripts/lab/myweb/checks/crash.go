package checks

import (
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/sequence"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

var (
	childWrites  = toWrite(suite.Kinds...)
	statusWrites = toWrite(suite.Resource, suite.StatusResource)
)

// killed sets a MyWeb going, and kills the operator when the nth matching write is done, before the operator receives
// the response. The next process completes the work.
func killed(t *suite.T, nth int, m ledger.Match, set func()) *suite.Children {
	h := t.Follow()
	f := t.Rule(sequence.KillAfter(nth, m, t.Operator.Kill))
	stop := t.Supervise()
	set()
	t.AwaitFault(f, 1, 20*time.Second)
	web, c := converged(t, "web")
	stop()
	h.NeverDegraded(web)
	return c
}

// fewChanges fails the check when there were too many writes: a crash may cost one write more than an undisturbed run.
func fewChanges(t *suite.T, mark, children int) {
	changes := t.Changes(mark)
	if all := suite.About(changes, suite.Kinds...); len(all) > children+1 {
		t.Errorf("%d changes of children, %d are enough without a crash:\n%s", len(all), children, suite.Lines(all))
	}
	if all := suite.About(changes, statusWrites.Resources...); len(all) > 2+1 {
		t.Errorf("%d changes of status, 2 are enough without a crash:\n%s", len(all), suite.Lines(all))
	}
}

// killedAfter kills the operator right after the nth matching write for a new MyWeb.
func killedAfter(nth int, writes ledger.Match) func(*suite.T) {
	return func(t *suite.T) {
		mark := t.Mark()
		killed(t, nth, writes, func() { t.Create("web", suite.Sample()) })
		wantMade(t, mark, 1, suite.Kinds...)
		fewChanges(t, mark, 3)
	}
}

func killedInUpdate(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	after := killed(t, 1, childWrites, func() {
		t.Patch("web", `{"spec":{"pageContentHtml":"<h1>Next</h1>","image":"nginx:1.29"}}`)
	})
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	fewChanges(t, mark, 2)
}
