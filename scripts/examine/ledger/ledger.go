// Package ledger keeps the list of all requests that passed the proxy.
package ledger

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/wire"
)

// An Effect is the effect of a write on its object.
type Effect string

// Effects.
const (
	// None: a read, or a write that the API server did not accept.
	None Effect = ""
	// Moved: the object has a new resourceVersion, or is gone.
	Moved Effect = "moved"
	// Same: the API server accepted the write, and the object did not change.
	Same Effect = "same"
	// Unknown: the API server accepted the write, and its answer could not be read.
	Unknown Effect = "unknown"
)

// An Entry is one request of a client.
type Entry struct {
	// ID counts the requests from 1, in the order in which they came.
	ID int
	// Start is when the request came. Took is how long it lasted until the client had the whole answer, or lost it; 0
	// as long as Open.
	Start time.Time
	Took  time.Duration
	// Unknown requests are not recorded: the API server has not accepted the client yet.
	Unknown bool
	// Open requests are not answered yet, or are watches that continue.
	Open bool
	// User is the client, by the name of its kubeconfig.
	User string
	// Peer is the program that sent the request.
	Peer *loop.Peer
	wire.Request
	// Code is the code of the answer to the client; 0 as long as there is none, and when the answer was dropped.
	Code int
	// Message is the message of an answer that refused the request.
	Message string
	// Served are the codes that the API server answered with: none when the request did not reach it, two when it was
	// duplicated. AuditIDs are the IDs of these answers in its audit log.
	Served   []int
	AuditIDs []string
	// UID and ResourceVersion are those of the object in the API server's answer; empty when the answer is not one
	// object.
	UID, ResourceVersion string
	// Known is the newest resourceVersion of that object that had passed the proxy, to any client, before the proxy
	// forwarded the request; empty when none had passed.
	Known string
	// Effect is the effect of a write.
	Effect Effect
	// Events is how many events of a watch the client got.
	Events int
	// Faults are the names of the rules that acted on the request.
	Faults []string
	// N numbers requests and events together, in the order in which they came and were delivered.
	N int
}

// Accepted reports whether the API server answered a request for a resource with success.
func (e Entry) Accepted() bool {
	return slices.ContainsFunc(e.Served, func(code int) bool { return code/100 == 2 })
}

// Committed reports whether the request changed something, or may have.
func (e Entry) Committed() bool { return e.Effect == Moved || e.Effect == Unknown }

// Creates reports whether the request created an object, or would have: an apply creates an object that does not
// exist.
func (e Entry) Creates() bool {
	return !e.DryRun && e.Subresource == "" && (e.Verb == wire.Create || slices.Contains(e.Served, http.StatusCreated))
}

// String formats the entry as evidence: time (UTC), verb, resource, object, code, duration, and other details.
//
//	12:03:04.123 apply deployments.apps default/a 200 3ms moved
func (e Entry) String() string {
	text := e.Start.UTC().Format("15:04:05.000") + " " + e.Verb + " " + e.FullResource()
	if which := e.Which(); which != "" {
		text += " " + which
	}
	if e.Code > 0 {
		text += fmt.Sprintf(" %d", e.Code)
	} else {
		text += " -"
	}
	if e.Open {
		text += " open"
	} else {
		text += " " + rounded(e.Took).String()
	}
	if e.Verb == wire.Watch {
		text += fmt.Sprintf(" %d events", e.Events)
	}
	if e.DryRun {
		text += " dry-run"
	}
	if e.Effect != None {
		text += " " + string(e.Effect)
	}
	if len(e.Faults) > 0 {
		text += fmt.Sprintf(" served=%v faults=%v", e.Served, e.Faults)
	}
	return output.Line(text) // a client chose the names
}

// rounded rounds a duration for a reader.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// A Ledger is safe for use by many goroutines. Its zero value is not usable.
type Ledger struct {
	now func() time.Time

	mu      sync.Mutex
	entries []*Entry                 // nil for a forgotten entry
	first   int                      // how many entries before these were forgotten
	bounded bool                     // forgets requests that have ended
	order   int                      // number of requests and events so far
	learnt  int                      // number of calls of Learn so far
	events  map[delivery]loop.Record // the newest
	known   *lru.Cache               // a history by UID
	objects *lru.Cache               // an object by UID, as long as records are copied
	changed chan struct{}            // closed and replaced when anything changes
	copy    func(loop.Record)
}

// A history holds the versions of an object, oldest first.
type history []version

// A version is a resourceVersion, and the value of Ledger.learnt when it was first seen.
type version struct {
	resourceVersion string
	at              int
}

// A delivery names a user, and the namespace and the resource of events that it got; empty means any.
type delivery struct{ user, namespace, resource string }

// New returns an empty ledger. A nil clock means the system's clock.
func New(clock func() time.Time) *Ledger {
	if clock == nil {
		clock = time.Now
	}
	return &Ledger{now: clock, known: lru.New(0), objects: lru.New(mostDescribed), events: map[delivery]loop.Record{},
		changed: make(chan struct{})}
}

// Limits of a bounded ledger: the objects whose versions it knows, and the versions of each object.
const (
	boundObjects  = 20_000
	boundVersions = 16
)

// NewBounded returns a ledger for months of requests: it forgets a request when it ends, and an object when many
// others came after it.
func NewBounded() *Ledger {
	l := New(nil)
	l.bounded, l.known = true, lru.New(boundObjects)
	return l
}

// Begin enters a request that just came and returns its ID.
func (l *Ledger) Begin(user string, request wire.Request, peer *loop.Peer) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order++
	e := &Entry{ID: l.first + len(l.entries) + 1, Start: l.now(), Open: true, User: user, Request: request, Peer: peer,
		N: l.order}
	l.entries = append(l.entries, e)
	l.notify()
	return e.ID
}

// Change lets f change an entry. f must not call the ledger.
func (l *Ledger) Change(id int, f func(*Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.entries[id-1-l.first])
	l.notify()
}

// End marks a request as ended.
func (l *Ledger) End(id int) {
	l.Change(id, func(e *Entry) {
		e.Open, e.Took = false, l.now().Sub(e.Start)
		l.record(e, l.recordOf(e))
	})
	if l.bounded {
		l.forget(id)
	}
}

func (l *Ledger) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Learn notes an object that passed the proxy.
func (l *Ledger) Learn(o wire.Object) {
	if o.UID == "" || o.ResourceVersion == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learnt++
	versions := l.history(o.UID)
	if !Newer(o.ResourceVersion, newest(versions)) {
		return
	}
	versions = append(versions, version{o.ResourceVersion, l.learnt})
	if l.bounded {
		versions = versions[max(0, len(versions)-boundVersions):]
	}
	l.known.Add(o.UID, versions)
}

// history needs the lock.
func (l *Ledger) history(uid string) history {
	versions, _ := l.known.Get(uid)
	known, _ := versions.(history)
	return known
}

// Learnt returns the current moment, for KnownAt.
func (l *Ledger) Learnt() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.learnt
}

// KnownAt is the newest resourceVersion of an object that had passed the proxy at an earlier moment. Only the answer
// to a request names its object; by then a watch may already have reported the change.
func (l *Ledger) KnownAt(moment int, uid string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	versions := l.history(uid)
	for len(versions) > 0 && versions[len(versions)-1].at > moment {
		versions = versions[:len(versions)-1]
	}
	return newest(versions)
}

func newest(versions history) string {
	if len(versions) == 0 {
		return ""
	}
	return versions[len(versions)-1].resourceVersion
}

// EffectOf returns the effect of an accepted write, from the object in its answer and the resourceVersion that was
// known before. A write that changes an object gives it a resourceVersion newer than any before. When another client
// changed the object, and no watch had reported this when the request was sent, a write without effect looks like one
// with an effect.
func EffectOf(r wire.Request, answer wire.Object, known string) Effect {
	switch {
	case r.DryRun:
		return Same
	case answer.Kind == "Status": // the answer to a complete delete, a binding, an eviction
		return Moved
	case answer.ResourceVersion == "": // a review: answered, but never stored
		return Same
	case known != "" && !Newer(answer.ResourceVersion, known):
		return Same
	}
	return Moved
}

// Newer compares resourceVersions, which are numbers that grow with every change in the cluster.
func Newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}

// Entry returns the current state of one entry.
func (l *Ledger) Entry(id int) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[id-1-l.first].clone()
}

// Entries returns copies of the entries that match all given matches, in the order of their ID.
func (l *Ledger) Entries(matches ...Match) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Entry
	for _, e := range l.entries {
		if e != nil && matchesAll(*e, matches) {
			found = append(found, e.clone())
		}
	}
	return found
}

func (e Entry) clone() Entry {
	e.Served, e.AuditIDs, e.Faults = slices.Clone(e.Served), slices.Clone(e.AuditIDs), slices.Clone(e.Faults)
	return e
}

func matchesAll(e Entry, matches []Match) bool {
	return !slices.ContainsFunc(matches, func(m Match) bool { return !m.Matches(e) })
}

// Count returns how many entries match.
func (l *Ledger) Count(matches ...Match) int { return len(l.Entries(matches...)) }

// Mark is the ID of the newest entry. Match.After uses it to leave out earlier entries.
func (l *Ledger) Mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + len(l.entries)
}

// Newest is the number of the newest request or event: Entry.N, and loop.Record.N.
func (l *Ledger) Newest() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order
}

// Delivered is the newest event about a resource in a namespace that a user got, except about the ConfigMap that the
// cluster creates in each; an empty record when there was none. An empty namespace or resource means any.
func (l *Ledger) Delivered(user, namespace, resource string) loop.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[delivery{user, namespace, resource}]
}

// coalesce is how long Await waits for more changes before it counts again, because a count reads the whole ledger.
const coalesce = time.Millisecond

// Await returns when at least n entries match. When ctx ends, the error has the number of matches.
func (l *Ledger) Await(ctx context.Context, n int, matches ...Match) error {
	for {
		changed := l.whenChanged()
		have := l.Count(matches...)
		if have >= n {
			return nil
		}
		select {
		case <-changed:
			time.Sleep(coalesce)
		case <-ctx.Done():
			return fmt.Errorf("waited for %d requests, saw %d: %w", n, have, context.Cause(ctx))
		}
	}
}

// AwaitQuiet returns when, for the given time from now on, no matching entry was open, began, or ended. Watches that
// continue do not count as open.
func (l *Ledger) AwaitQuiet(ctx context.Context, window time.Duration, matches ...Match) error {
	return l.AwaitQuietSince(ctx, l.now(), window, matches...)
}

// AwaitQuietSince is AwaitQuiet that counts from an earlier moment on.
func (l *Ledger) AwaitQuietSince(ctx context.Context, begin time.Time, window time.Duration, matches ...Match) error {
	for {
		last, open := l.lastSign(matches)
		if begin.After(last) {
			last = begin
		}
		left := window - l.now().Sub(last)
		if !open && left <= 0 {
			return nil
		}
		if open {
			left = window
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waited for %v without requests: %w", window, context.Cause(ctx))
		}
	}
}

// lastSign is the time of the newest activity of a matching request, and whether a request is not answered yet.
func (l *Ledger) lastSign(matches []Match) (last time.Time, open bool) {
	for _, e := range l.Entries(matches...) {
		at := e.Start
		if !e.Open {
			at = e.Start.Add(e.Took)
		} else if e.Verb != wire.Watch {
			open = true
		}
		if at.After(last) {
			last = at
		}
	}
	return last, open
}

func (l *Ledger) whenChanged() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
