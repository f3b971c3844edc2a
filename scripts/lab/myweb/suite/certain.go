package suite

import (
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/wire"
)

// certain is how long a program must wait after the event of an act before the lab knows that the program does not react
// to it. A program that needs a processor does not wait, so a busy machine makes no program look idle.
const certain = 500 * time.Millisecond

// A waiting is the time since which an operator waits.
type waiting struct {
	since time.Time
	looks int
}

// isCertain looks at the operator once, and reports whether it has waited long enough in all looks.
func (w *waiting) isCertain(t *T) bool {
	last, waits := t.waits()
	switch {
	case !waits:
		w.since, w.looks = time.Now(), 0
	case last.After(w.since):
		w.since, w.looks = last, 0
	}
	w.looks++
	return time.Since(w.since) > certain && w.looks > int(certain/(2*fixture.Poll))
}

// waits reports whether the operator got the event of the last act, and now waits for a timer or for input: it sleeps, no
// request is open, and no watch is without its first events. last is when it got an event or the answer to a request, in
// any namespace, because it may handle one MyWeb after the other. When its last request was refused, it does not wait: it
// tries again after a backoff.
func (t *T) waits() (last time.Time, waits bool) {
	user, l := t.Operator.User.Name, t.Fixture.Ledger
	p := t.Operator.Process()
	if p == nil || t.act.resource == "" || l.Delivered(user, t.Namespace, t.act.resource).N <= t.act.n || !p.Asleep() {
		return last, false
	}
	last = l.Delivered(user, "", "").Time
	all, refused := t.Mine(0), false
	all.Namespace = ""
	for _, e := range l.Entries(all) {
		switch {
		case e.Verb == wire.Watch && e.Events > 0:
			continue
		case e.Verb == wire.Watch && time.Since(e.Start) > t.Operator.patience:
			continue // it has no first events
		case e.Open:
			return last, false
		case e.Namespace == t.Namespace:
			refused = !e.Accepted()
		}
		if end := e.Start.Add(e.Took); end.After(last) {
			last = end
		}
	}
	return last, !refused
}

// Handled returns when it is certain that the operator does nothing more about the last act, at most after a time.
func (t *T) Handled(most time.Duration) {
	w, begin := waiting{}, time.Now()
	for !w.isCertain(t) && time.Since(begin) < most {
		t.Pause(fixture.Poll)
	}
}

// AwaitQuietSinceEvent is AwaitQuiet for the time since the operator got the newest event about the namespace.
func (t *T) AwaitQuietSinceEvent(window time.Duration) {
	t.quietSince(t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, "").Time, window)
}
