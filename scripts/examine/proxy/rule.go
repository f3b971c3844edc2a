package proxy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"example.com/operator-workshop/scripts/examine/ledger"
)

// A Moment is when a rule acts on a request.
type Moment int

const (
	// Before the request is forwarded: the API server does not notice the rule's action.
	Before Moment = iota
	// After the API server answered, and before the client gets any part of the answer. The whole answer is there, so
	// the request is done; for a watch it is only the beginning of the answer.
	After
)

func (m Moment) String() string {
	if m == Before {
		return "before"
	}
	return "after"
}

// A Rule disturbs requests.
type Rule struct {
	// Name in reports and in the ledger. Without a name, it is made of the action and the match.
	Name string
	// Match selects requests. At the moment After, it also sees code and effect.
	ledger.Match
	// Skip is how many matching requests pass first; Times is how many are disturbed then, 0 means all. To disturb
	// only the third write: Skip 2, Times 1.
	Skip, Times int
	// Moment is when the rule acts; actions on a watch as a stream always act After.
	Moment Moment
	// Do is the action.
	Do Action
}

// A Fault is a rule that was added to a proxy.
type Fault struct {
	rule     Rule
	proxy    *Proxy
	released chan struct{}

	mu             sync.Mutex
	matched, fired int
	over           bool
	seen           map[*Stream]bool
	changed        chan struct{} // closed and replaced when it fires
}

// Add installs a rule. Rules act on a request in the order in which they were added; a rule that drops or answers the
// request is the last. A rule that freezes watches also freezes those that are already open.
func (p *Proxy) Add(r Rule) *Fault {
	if r.Do.stream != nil {
		r.Moment = After
	}
	if r.Name == "" {
		r.Name = fmt.Sprintf("%s %s %v %v", r.Do.name, r.Moment, r.Verbs, r.Resources)
	}
	f := &Fault{rule: r, proxy: p, released: make(chan struct{}), seen: map[*Stream]bool{}, changed: make(chan struct{})}
	p.mu.Lock()
	p.faults, p.all = append(p.faults, f), append(p.all, f)
	open := p.openStreams()
	p.mu.Unlock()
	if r.Do.lasting {
		for _, s := range open {
			_ = f.meet(s.exchange, s)
		}
	}
	return f
}

// Name of the rule.
func (f *Fault) Name() string { return f.rule.Name }

// Matched returns how many requests the rule matched, including those that Skip let pass.
func (f *Fault) Matched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.matched
}

// Fired returns how many requests the rule disturbed.
func (f *Fault) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Await returns when the rule has disturbed n requests. Its action on the n-th request may still be in progress.
func (f *Fault) Await(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		fired, changed := f.fired, f.changed
		f.mu.Unlock()
		if fired >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("rule %q fired %d times, not %d: %w", f.Name(), fired, n, context.Cause(ctx))
		}
	}
}

// Release removes the rule and undoes lasting actions: held requests continue, frozen watches thaw.
func (f *Fault) Release() {
	f.Remove()
	f.mu.Lock()
	if !f.over {
		f.over = true
		close(f.released)
	}
	seen := f.seen
	f.seen = map[*Stream]bool{}
	f.mu.Unlock()
	for s := range seen {
		s.thaw(f)
	}
}

// Remove removes the rule: it acts on no further request. Requests that it holds and watches that it froze stay so.
func (f *Fault) Remove() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.proxy.faults = slices.DeleteFunc(f.proxy.faults, func(o *Fault) bool { return o == f })
}

// Clear releases all rules.
func (p *Proxy) Clear() {
	p.mu.Lock()
	faults := slices.Clone(p.all)
	p.mu.Unlock()
	for _, f := range faults {
		f.Release()
	}
}

// meet applies the rules of a moment to a request.
func (x *Exchange) meet(m Moment) error {
	x.proxy.mu.Lock()
	faults := slices.Clone(x.proxy.faults)
	x.proxy.mu.Unlock()
	for _, f := range faults {
		if f.rule.Moment != m {
			continue
		}
		if err := f.meet(x, x.stream); err != nil || x.made {
			return err
		}
	}
	return nil
}

// meet acts on a request, or on its stream, when the rule matches it.
func (f *Fault) meet(x *Exchange, s *Stream) error {
	if !f.take(x, s) {
		return nil
	}
	x.change(func(e *ledger.Entry) { e.Faults = append(e.Faults, f.Name()) })
	f.mu.Lock()
	f.fired++
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	if f.rule.Do.stream != nil {
		f.rule.Do.stream(s, f)
		return nil
	}
	return f.rule.Do.do(x, f)
}

// take decides whether a request is disturbed. A rule for streams sees each stream once: when it is opened, or when
// the rule is added.
func (f *Fault) take(x *Exchange, s *Stream) bool {
	onStream := f.rule.Do.stream != nil
	if onStream && s == nil || !f.rule.Match.Matches(x.Entry()) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if onStream {
		if f.seen[s] || f.over {
			return false
		}
		f.seen[s] = true
	}
	if f.matched++; f.matched <= f.rule.Skip {
		return false
	}
	return f.rule.Times == 0 || f.matched <= f.rule.Skip+f.rule.Times
}
