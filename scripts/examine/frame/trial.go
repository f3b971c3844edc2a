// Package frame is what all experiments on an operator have in common: a namespace, the requests that the operator sends
// about it, waits that last as long as the machine needs, and disturbances that end with the experiment.
package frame

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A Trial is an experiment in a namespace, from its beginning until its disturbances have ended.
type Trial struct {
	// Fixture may be shared with other trials, which use other namespaces.
	Fixture *fixture.Fixture
	// Clock limits the waits.
	Clock *clock.Clock
	// Ctx ends when the time of the trial is over.
	Ctx context.Context
	// Namespace is empty at the beginning.
	Namespace string
	// User is the beginning of the names of the operator's users.
	User string
	// Start is the ledger's mark at the beginning: earlier requests do not count.
	Start int
	// About reports whether a request of the operator counts. Without it, those in the namespace count.
	About func(ledger.Entry) bool

	mu       sync.Mutex
	faults   []*proxy.Fault
	cleanups []func(context.Context)
}

// During is a trial in the same namespace, with another time.
func (t *Trial) During(ctx context.Context) *Trial {
	return &Trial{Fixture: t.Fixture, Clock: t.Clock, Ctx: ctx, Namespace: t.Namespace, User: t.User, Start: t.Start,
		About: t.About}
}

// Mark is a moment in the ledger, for Requests and Changes.
func (t *Trial) Mark() int { return t.Fixture.Ledger.Mark() }

// Requests are the operator's requests after a mark, without leases and events.
func (t *Trial) Requests(after int, verbs ...string) []ledger.Entry {
	return t.Fixture.Ledger.Entries(t.Mine(after, verbs...))
}

// Mine matches the requests of Requests.
func (t *Trial) Mine(after int, verbs ...string) ledger.Match {
	m := ledger.Match{Verbs: verbs, After: max(after, t.Start), Except: ledger.Housekeeping, Where: func(e ledger.Entry) bool {
		return strings.HasPrefix(e.User, t.User) && (t.About == nil || t.About(e))
	}}
	if t.About == nil {
		m.Namespace = t.Namespace
	}
	return m
}

// Writes are the operator's writes after a mark, including refused ones.
func (t *Trial) Writes(after int) []ledger.Entry { return t.Requests(after, wire.Writes...) }

// Changes are the writes that changed something.
func (t *Trial) Changes(after int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(t.Mine(after), ledger.Changes)
}

// Eventually returns nil when observe returns nil within the time, and before the time of the trial is over.
func (t *Trial) Eventually(within time.Duration, observe func() error) error {
	return t.Clock.Eventually(t.Ctx, within, observe)
}

// Everywhere adds a rule for the operator's requests, in all namespaces if the rule names none. The rule ends when it is
// released, or with the trial.
func (t *Trial) Everywhere(r proxy.Rule) *proxy.Fault {
	if r.Users == nil {
		r.Users = []string{t.User}
	}
	f := t.Fixture.Proxy.Add(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, f)
	return f
}

// Forbid is fixture.Forbid until allow is called, or the trial ends.
func (t *Trial) Forbid(p fixture.Policy, unless, message string) (allow func() error, err error) {
	return t.untilEnd(t.Fixture.Forbid(t.Ctx, p, unless, message))
}

// Mutate is fixture.Mutate until stop is called, or the trial ends.
func (t *Trial) Mutate(p fixture.Policy, patch string) (stop func() error, err error) {
	return t.untilEnd(t.Fixture.Mutate(t.Ctx, p, patch))
}

// Limit is fixture.Limit until lift is called, or the trial ends.
func (t *Trial) Limit(namespace string, hard corev1.ResourceList) (lift func() error, err error) {
	return t.untilEnd(t.Fixture.Limit(t.Ctx, namespace, hard))
}

// LimitStatefulSets is fixture.LimitStatefulSets until the trial ends.
func (t *Trial) LimitStatefulSets() error {
	_, err := t.untilEnd(t.Fixture.LimitStatefulSets(t.Ctx, t.Namespace))
	return err
}

// untilEnd returns a function that removes a policy or a quota. The trial removes it at its end, too.
func (t *Trial) untilEnd(away func(context.Context) error, err error) (func() error, error) {
	if away != nil {
		t.Cleanup(func(ctx context.Context) { _ = away(ctx) }) // it may be gone already
	}
	return func() error { return away(t.Ctx) }, err
}

// Cleanup runs f at the end of the trial, the last function first. Its context lasts 10 s.
func (t *Trial) Cleanup(f func(ctx context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Faults are the rules of the trial.
func (t *Trial) Faults() []*proxy.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.faults)
}

// End ends the disturbances. The trial's own time may be over.
func (t *Trial) End(ctx context.Context) {
	for _, f := range t.Faults() {
		f.Release()
	}
	for _, f := range slices.Backward(t.cleanups) {
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		f(within)
		cancel()
	}
}
