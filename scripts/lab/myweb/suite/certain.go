package suite

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// certain is how long a program must wait after the event of an act before the lab knows that the program does not react
// to it. A program that needs a processor does not wait, so a busy machine makes no program look idle. A program that
// collects events for a longer time, by a timer, looks idle unless it reports status.
const certain = time.Second

// A waiting is the time since which an operator waits.
type waiting struct {
	since time.Time
	looks int
}

// isCertain looks at the operator once, and reports whether it has waited for a time, in all looks.
func (w *waiting) isCertain(t *T, window time.Duration) bool {
	last, waits := t.waits()
	switch {
	case !waits:
		w.since, w.looks = time.Now(), 0
	case last.After(w.since):
		w.since, w.looks = last, 0
	}
	w.looks++
	return time.Since(w.since) > window && w.looks > int(window/(2*fixture.Poll))
}

// waits reports whether the operator got the event of the last act, and now waits for a timer or for input: it sleeps, and
// no request is open. It watches every resource that it has watched before, and no watch waits for its first events; after
// the time of patience, the lab assumes that there are none. last is when it got an event or the answer to a request, in
// any namespace, because it may handle one MyWeb after the other, and all its requests may share a rate limiter. When the
// last request about an object failed, the operator does not wait: it tries again after a backoff. When another replica
// sends requests, that replica may react.
func (t *T) waits() (last time.Time, waits bool) {
	user, l := t.Operator.User.Name, t.Fixture.Ledger
	p := t.Operator.Process()
	if p == nil || t.act.resource == "" || l.Delivered(user, t.Namespace, t.act.resource).N <= t.act.n || !p.Asleep() {
		return last, false
	}
	last = l.Delivered(user, "", "").Time
	watched, failed := map[string]bool{}, map[string]bool{}
	for _, e := range l.Entries(t.deciding()) {
		resource := e.FullResource()
		switch {
		case e.User != user, e.Open && e.Verb != wire.Watch, e.Open && e.Events == 0 && time.Since(e.Start) <= t.Operator.patience:
			return last, false
		case e.Verb == wire.Watch:
			watched[resource] = watched[resource] || e.Open
		case (e.Namespace == "" || e.Namespace == t.Namespace) && !slices.Contains(ledger.Housekeeping, resource):
			failed[resource+" "+e.Which()] = e.Code == 0 || e.Code >= http.StatusBadRequest
		}
		if end := e.Start.Add(e.Took); end.After(last) {
			last = end
		}
	}
	watches := !slices.Contains(slices.Collect(maps.Values(watched)), false)
	return last, watches && !slices.Contains(slices.Collect(maps.Values(failed)), true)
}

// works reports whether the operator runs, needs a processor to go on, or waits for the answer to a request, in any
// namespace: one worker handles one MyWeb after the other. A system that does not show the states of threads shows only the
// requests.
func (t *T) works() bool {
	p := t.Operator.Process()
	if p == nil || !p.Running() {
		return false
	}
	m := t.Mine(0)
	m.Namespace, m.After = "", 0
	isOpen := func(e ledger.Entry) bool { return e.Open && e.Verb != wire.Watch }
	return runtime.GOOS == "linux" && !p.Asleep() || slices.ContainsFunc(t.Fixture.Ledger.Entries(m), isOpen)
}

// deciding matches the requests that show whether the operator waits: those of the check, and earlier ones for all
// namespaces, and earlier watches.
func (t *T) deciding() ledger.Match {
	return ledger.Match{Where: func(e ledger.Entry) bool {
		if e.ID > t.Start {
			return strings.HasPrefix(e.User, t.Operator.User.Name)
		}
		return e.User == t.Operator.User.Name && (e.Namespace == "" || e.Verb == wire.Watch)
	}}
}

// Handled returns when it is certain that the operator does nothing more about the last act, at most after a time.
func (t *T) Handled(most time.Duration) {
	w, begin := waiting{}, time.Now()
	for !w.isCertain(t, certain) && time.Since(begin) < most {
		t.Pause(fixture.Poll)
	}
}

// observed is how long a program must wait after an event before the lab knows that the event has reached its cache: an
// event is delivered a moment before the program gets it.
const observed = 100 * time.Millisecond

// Observed returns when the operator has got the newest version of each object of a resource, and waits; at most after a
// time. It reports whether this is certain.
func (t *T) Observed(resource string, most time.Duration) (sure bool) {
	list, err := t.Objects(resource).List(t.Ctx, metav1.ListOptions{})
	t.Must(err, "list "+resource)
	w := waiting{}
	for begin := time.Now(); !sure && time.Since(begin) < most; t.Pause(fixture.Poll) {
		got := t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, resource)
		isOlder := func(u unstructured.Unstructured) bool {
			return ledger.Newer(u.GetResourceVersion(), got.ResourceVersion)
		}
		sure = w.isCertain(t, observed) && !slices.ContainsFunc(list.Items, isOlder)
	}
	return sure
}

// AwaitQuietSinceEvent is AwaitQuiet for the time since the operator got the newest event about the namespace.
func (t *T) AwaitQuietSinceEvent(window time.Duration) {
	t.quietSince(t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, "").Time, window)
}
