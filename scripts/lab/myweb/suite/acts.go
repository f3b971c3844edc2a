package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/wire"
)

// An act is what a user did, or the lab in the place of a user. resource is that of the changed object, if there is one.
// n, mark and since are the newest record and the newest entry of the ledger before it, and its time. unowned says which
// owner the object lacked, when it was deleted.
type act struct {
	text, resource string
	n, mark        int
	since          time.Time
	unowned        string
}

// Act notes what happens next, also in the loop. The outcome of a failed check has the last act before the failure.
func (t *T) Act(format string, args ...any) { t.ActOn("", format, args...) }

// ActOn is Act for what changes objects of a resource.
func (t *T) ActOn(resource, format string, args ...any) {
	l, text := t.Fixture.Ledger, fmt.Sprintf(format, args...)
	t.begin(text, resource)
	l.Bypassed(l.Bypass(loop.Record{Is: loop.Note, By: loop.Client{Name: "the lab"}, Namespace: t.Namespace, Note: text}), nil)
}

// begin makes a text the last act, and returns the act before it.
func (t *T) begin(text, resource string) (before act) {
	next := act{text: text, resource: resource, n: t.Fixture.Ledger.Newest(), mark: t.Mark(), since: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.act, t.awaited = t.act, next, next.since
	return before
}

// asUser sends a request of a user, which is the last act, and records the request in the loop. A request that fails is no
// act: nothing has changed.
func (t *T) asUser(text, verb, resource, name string, send func() (*unstructured.Unstructured, error)) (
	*unstructured.Unstructured, error) {
	resource, subresource, _ := strings.Cut(resource, "/")
	before := t.begin(text, resource)
	l := t.Fixture.Ledger
	gvr := GVR(resource)
	r := l.Bypass(loop.Record{Is: loop.Request, By: loop.Client{Name: loop.User}, Verb: verb, Group: gvr.Group,
		Version: gvr.Version, Resource: gvr.Resource, Subresource: subresource, Namespace: t.Namespace, Name: name})
	u, err := send()
	r.Took = float64(time.Since(r.Time)) / float64(time.Millisecond)
	if err != nil {
		t.mu.Lock()
		t.act = before
		t.mu.Unlock()
	}
	var refused apierrors.APIStatus
	switch {
	case errors.As(err, &refused):
		r.Code = int(refused.Status().Code)
	case err == nil && verb == wire.Create:
		r.Code, r.Effect = http.StatusCreated, string(ledger.Moved)
	case err == nil:
		r.Code, r.Effect = http.StatusOK, string(ledger.Moved)
	}
	var content []byte
	if u != nil {
		r.UID, r.ResourceVersion = string(u.GetUID()), u.GetResourceVersion()
		content, _ = u.MarshalJSON() // without it, the record has no description
	}
	l.Bypassed(r, content)
	return u, err
}

// reactionTo describes what the operator got and sent after an act.
func (t *T) reactionTo(to act) string {
	event, requests := t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, ""), t.Requests(to.mark)
	got := fmt.Sprintf("got the event %s %s %s and sent no request.", event.Kind, event.Name, event.Type)
	switch {
	case to.text == "":
		return ""
	case len(requests) == 0 && event.N <= to.n:
		return "After that, the operator got no event and sent no request."
	case len(requests) == 0:
		return strings.TrimRight("After that, the operator "+got+"\n"+to.unowned, "\n")
	}
	last := requests[len(requests)-1]
	text := fmt.Sprintf("After that, the operator sent %d requests, the last: %s %s %s", len(requests), last.Verb,
		last.FullResource(), last.Name)
	if len(requests) == 1 {
		text = fmt.Sprintf("After that, the operator sent 1 request: %s %s %s", last.Verb, last.FullResource(), last.Name)
	}
	if !last.Open {
		text += strings.TrimRight(fmt.Sprintf(" %d %s", last.Code, last.Effect), " ")
	}
	if last.Message != "" {
		text += ": " + last.Message
	}
	text += "."
	if event.N > last.N {
		text += " Then it " + got
	}
	disowns := func(e ledger.Entry) bool { return !e.Creates() && t.Fixture.Ledger.RemovesOwners(e) }
	if at := slices.IndexFunc(requests, disowns); at >= 0 {
		text += fmt.Sprintf("\nThe %s %s has no owner reference since the operator's %s.", KindOf[requests[at].FullResource()],
			requests[at].Name, requests[at].Verb)
	}
	isOther := func(e ledger.Entry) bool { return e.Verb == wire.Create || e.Open }
	switch ofChildren := About(requests, Kinds...); {
	case to.resource == Resource && len(ofChildren) == 0:
		text += "\nNo request was about a child."
	case len(About(requests[len(requests)-1:], Kinds...)) == 0:
		if writes := slices.DeleteFunc(ofChildren, isOther); len(writes) > 0 {
			w := writes[len(writes)-1]
			text += fmt.Sprintf("\nThe last request about a child: %s %s %s %d %s", w.Verb, w.FullResource(), w.Name, w.Code, w.Effect)
		}
	}
	return strings.TrimRight(text, " ")
}

// mostWrites is how many writes of one object show that an operator does not stop. With backoff, writes that the API
// server refuses are fewer.
const mostWrites = 30

// mostBefore is mostWrites while an expected event has not come yet: a rollout calls many reconciles, and an operator may
// write in each of them.
const mostBefore = 100

// endless returns the first writes of an object that the operator writes again and again since a mark, so many times. Of
// several such objects, it returns the one that changes most often: a write that changes nothing calls no Reconcile.
func (t *T) endless(after, times int) []ledger.Entry {
	writes, changes, most := map[string][]ledger.Entry{}, map[string]int{}, ""
	for _, e := range t.Writes(after) {
		object := e.FullResource() + " " + e.Name
		writes[object] = append(writes[object], e)
		if e.Committed() && !e.Creates() {
			changes[object]++
		}
		if changes[object] > changes[most] {
			most = object
		}
		if len(writes[object]) == times {
			if 2*len(writes[most]) < times {
				most = object
			}
			return writes[most]
		}
	}
	return nil
}

// mustStop ends the check when the operator writes an object again and again since a mark, so many times.
func (t *T) mustStop(mark, times int) {
	writes := t.endless(mark, times)
	if writes == nil {
		return
	}
	first, last := writes[0], writes[len(writes)-1]
	text := fmt.Sprintf("expected that the operator stops writing; but it wrote %s %s %d times in %v", first.FullResource(),
		first.Name, len(writes), last.Start.Sub(first.Start).Round(time.Millisecond))
	fields := t.varying(first)
	if at := slices.IndexFunc(fields, field.isPutBack); at >= 0 {
		text += fmt.Sprintf(": each write removes %s, %s puts it back, and each of the two changes calls Reconcile again",
			fields[at].path, fields[at].by[0])
		removes := func(e ledger.Entry) bool { return slices.Contains(t.Fixture.Ledger.Fields(e), fields[at].path) }
		writes = writes[max(0, slices.IndexFunc(writes, removes)):]
	} else if len(fields) > 0 {
		text += ", and changed " + listed(fields)
	}
	t.Unexpected(writes, "%s", text)
	runtime.Goexit()
}

// endlessLook is the interval of looks for endless writes, because a look reads the whole ledger.
const endlessLook = 250 * time.Millisecond

// cancelWhenEndless cancels a wait for an operator that does not stop.
func (t *T) cancelWhenEndless(ctx context.Context, mark int, cancel context.CancelFunc) {
	for fixture.Pause(ctx, endlessLook) == nil {
		if t.endless(mark, mostWrites) != nil {
			cancel()
		}
	}
}
