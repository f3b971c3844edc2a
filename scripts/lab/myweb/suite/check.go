package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/wire"
)

// A Check is one experiment.
type Check struct {
	// ID names the check, in reports and to -run: "behaviour/05-edited-field", "fault/17-child-deleted".
	ID string
	// Group is the number of the behaviour or of the row in the fault catalogue.
	Group string
	// Title is what must be true, in one line.
	Title string
	// Alone checks have the operator for themselves: they stop it, or disturb more than their namespace.
	Alone bool
	// Fast checks belong to the subset that CI runs on every change.
	Fast bool
	// Within is the deadline; 0 is a minute.
	Within time.Duration
	// Needs are what a program must have for the check to be about it.
	Needs []Need
	// NotApplicable is why no implementation is examined: the check is printed as skipped.
	NotApplicable string
	// Run does it. The operator runs and is ready when it begins; an Alone check may leave it as it likes.
	Run func(t *T)
}

// outcome is one of the check, without evidence.
func (c Check) outcome(v Verdict, reason string) Outcome {
	return Outcome{Check: c.ID, Title: c.Title, Group: c.Group, Needs: c.Needs, Verdict: v, Reason: reason}
}

// NotRun are outcomes of the checks that have none.
func NotRun(checks []Check, known []Outcome, reason string) (all []Outcome) {
	for _, c := range checks {
		if !slices.ContainsFunc(known, func(o Outcome) bool { return o.Check == c.ID }) {
			all = append(all, c.outcome(Skipped, reason))
		}
	}
	return all
}

// Select returns the checks whose ID matches one of the patterns, which commas separate; all for an empty one.
func Select(checks []Check, patterns string) ([]Check, error) {
	r, err := regexp.Compile(alternatives(patterns))
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !r.MatchString(c.ID) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no check matches %q: `bin/lab checks` lists them", patterns)
	}
	return chosen, nil
}

// alternatives is a regular expression for a list of some. A comma inside braces, as in 0{1,2}, separates nothing.
func alternatives(patterns string) string {
	depth := 0
	return strings.Map(func(r rune) rune {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				return '|'
			}
		}
		return r
	}, strings.Trim(patterns, ", "))
}

// Fast returns the checks of the fast subset.
func Fast(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !c.Fast })
}

// T is a check while it runs. Its methods that can fail end the check, unless they say otherwise; call
// these from the goroutine of Run alone.
type T struct {
	// Fixture is shared with other checks, which have other namespaces.
	Fixture *fixture.Fixture
	// Operator is the one under examination.
	Operator *Operator
	// Namespace is the check's own, empty at the beginning.
	Namespace string

	ctx   context.Context
	check Check
	start int // the ledger's mark

	mu       sync.Mutex
	failures []string
	at       int // in the ledger, of the first failure
	skipped  string
	logs     []string
	cleanups []func()
	faults   []*proxy.Fault
	ports    []int32
}

// Context ends with the check's deadline.
func (t *T) Context() context.Context { return t.ctx }

// Errorf notes a failure and goes on. It may be called from any goroutine.
func (t *T) Errorf(format string, args ...any) {
	t.fail(t.Fixture.Ledger.Newest(), fmt.Sprintf(format, args...))
}

// Unexpected notes requests that the operator must not send, and goes on.
func (t *T) Unexpected(requests []ledger.Entry, format string, args ...any) {
	t.fail(requests[0].N, fmt.Sprintf(format, args...)+":"+Lines(requests))
}

func (t *T) fail(at int, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures = append(t.failures, reason); len(t.failures) == 1 {
		t.at = at
	}
}

// Fatalf notes a failure and ends the check.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Must ends the check when err is not nil; doing says what was tried.
func (t *T) Must(err error, doing string) {
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

// Skipf ends the check without a verdict on the operator.
func (t *T) Skipf(format string, args ...any) {
	t.mu.Lock()
	t.skipped = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

// Logf adds a line to the evidence, which is shown when the check fails.
func (t *T) Logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

// Cleanup runs f at the end of the check, the last one first. Its context is alive for 10 s.
func (t *T) Cleanup(f func(ctx context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 10*time.Second)
		defer cancel()
		f(ctx)
	})
}

// poll is how often a condition is looked at.
const poll = 30 * time.Millisecond

// Eventually returns when observe returns nil. The check ends when it has not done so in time; 0 is 20 s.
func (t *T) Eventually(what string, within time.Duration, observe func() error) {
	if within == 0 {
		within = 20 * time.Second
	}
	begin := time.Now()
	for {
		err := observe()
		if err == nil {
			return
		}
		late := time.Since(begin) > within
		if t.ctx.Err() != nil {
			t.Fatalf("expected that %s; but not after %v, when the time of the check was over: %v", what,
				time.Since(begin).Round(time.Second), err)
		} else if late {
			t.Fatalf("expected that %s; but not within %v: %v", what, within, err)
		}
		t.mustRun(what, err)
		t.sleep(poll)
	}
}

// mustRun ends the check when the operator has ended by itself: what has not come about will not. An Alone check may
// have ended it.
func (t *T) mustRun(what string, err error) {
	if p := t.Operator.Process(); p != nil && !p.Running() && !t.check.Alone {
		t.Fatalf("expected that %s; but the operator %v, and %v", what, p.Exit(), err)
	}
}

// Pause waits. It is for windows in which nothing may happen; what must happen is awaited. A window that the end
// of the check's time cuts short has shown nothing: the check fails.
func (t *T) Pause(d time.Duration) {
	if t.sleep(d); t.ctx.Err() != nil {
		t.Fatalf("the time of the check is over, inside a window of %v: %v", d, context.Cause(t.ctx))
	}
}

// sleep returns after a time, or when the time of the check is over.
func (t *T) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

// Rule adds a rule for the operator's requests in the check's namespace (an Alone check's may reach further:
// Everywhere). It is released when the check ends. A rule that never fired fails the check, for then nothing
// was shown.
func (t *T) Rule(r proxy.Rule) *proxy.Fault {
	if r.Namespace == "" {
		r.Namespace = t.Namespace
	}
	return t.Everywhere(r)
}

// Everywhere is Rule without the bound to a namespace. Watches are of all namespaces.
func (t *T) Everywhere(r proxy.Rule) *proxy.Fault {
	if r.Users == nil {
		r.Users = []string{t.Operator.User.Name}
	}
	f := t.Fixture.Proxy.Add(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, f)
	return f
}

// AwaitFault returns when a rule has disturbed n requests.
func (t *T) AwaitFault(f *proxy.Fault, n int, within time.Duration) {
	within = t.limit(within, t.Operator.reports)
	ctx, cancel := context.WithTimeoutCause(t.ctx, within, fmt.Errorf("%v are over", within))
	defer cancel()
	if err := f.Await(ctx, n); err != nil {
		t.Fatalf("the fault did not come about: %v", err)
	}
}

// StopControllers lets the cluster's own controllers hang until resume is called, or the check ends. Only an Alone
// check may call it: no pod comes or goes meanwhile, in any namespace.
func (t *T) StopControllers() (resume func()) {
	signal := func(s syscall.Signal) error { return t.Fixture.Signal(fixture.ControllerManager, s) }
	t.Cleanup(func(context.Context) { _ = signal(syscall.SIGCONT) })
	t.Must(signal(syscall.SIGSTOP), "stop the controllers")
	return func() { t.Must(signal(syscall.SIGCONT), "let the controllers go on") }
}

// Mark is a moment in the ledger, for Requests and Changes.
func (t *T) Mark() int { return t.Fixture.Ledger.Mark() }

// Requests are the operator's requests in the check's namespace after a mark, leases and events apart:
// those of every user whose name begins with the operator's.
func (t *T) Requests(after int, verbs ...string) []ledger.Entry {
	return t.Fixture.Ledger.Entries(t.mine(after, verbs...))
}

func (t *T) mine(after int, verbs ...string) ledger.Match {
	return ledger.Match{Verbs: verbs, Namespace: t.Namespace, After: max(after, t.start), Except: ledger.Housekeeping,
		Where: func(e ledger.Entry) bool { return strings.HasPrefix(e.User, t.Operator.User.Name) }}
}

// Writes are the operator's attempts to change something in the namespace after a mark, refused ones too.
func (t *T) Writes(after int) []ledger.Entry { return t.Requests(after, wire.Writes...) }

// Changes are the writes that changed something.
func (t *T) Changes(after int) []ledger.Entry {
	return slices.DeleteFunc(t.Writes(after), func(e ledger.Entry) bool { return !e.Committed() })
}

// AwaitQuiet returns when the operator has written nothing in the namespace for a time.
func (t *T) AwaitQuiet(window time.Duration) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, 30*time.Second, errors.New("30 s are over"))
	defer cancel()
	if err := t.Fixture.Ledger.AwaitQuiet(ctx, window, t.mine(0, wire.Writes...)); err != nil {
		t.Fatalf("expected that the operator stops writing; but it does not stop writing: %v: %s", err, Lines(t.Writes(0)))
	}
}

// StaysQuiet watches for a time that the operator writes nothing in the namespace: in steady state there is no
// write, not even one that changes nothing.
func (t *T) StaysQuiet(window time.Duration) {
	mark := t.Mark()
	t.Pause(window)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Unexpected(writes, "expected no write while nothing happens; but in %v the operator sent %d", window, len(writes))
	}
}

// Lines are entries, each on a line of its own, to end a message with; of many the first and the last.
func Lines(entries []ledger.Entry) string {
	lines := lines(entries)
	if len(lines) > 12 {
		lines = slices.Concat(lines[:6], []string{fmt.Sprintf("… %d more …", len(lines)-12)}, lines[len(lines)-6:])
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// lines are entries without the name of the check's namespace.
func lines(entries []ledger.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, strings.ReplaceAll(e.String(), e.Namespace+"/", ""))
	}
	return all
}

// do runs the check and returns its outcome.
func (t *T) do() (o Outcome) {
	begin := time.Now()
	done, end := make(chan struct{}), 0
	go func() {
		defer close(done)
		defer t.cleanup()
		defer func() { end = t.Fixture.Ledger.Newest() }()
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("the check panicked: %v\n%s", r, debug.Stack())
			}
			if t.ctx.Err() != nil && t.sound() {
				t.Errorf("the time of the check is over: %v", context.Cause(t.ctx))
			}
		}()
		t.check.Run(t)
	}()
	<-done
	o = t.check.outcome(Passed, "")
	o.Took = time.Since(begin)
	o.Namespace, o.At, o.End = t.Namespace, t.at, end
	switch {
	case len(t.failures) > 0:
		o.Verdict, o.Reason, o.Evidence = Failed, strings.Join(t.failures, "\n"), t.evidence()
	case t.skipped != "":
		o.Verdict, o.Reason = Skipped, t.skipped
	}
	return o
}

func (t *T) cleanup() {
	for _, f := range t.faults {
		f.Release()
		if f.Fired() == 0 && t.sound() {
			t.Errorf("nothing was shown: the rule %q never fired (%d requests matched)", f.Name(), f.Matched())
		}
	}
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
	nodePorts.put(t.ports...)
}

// sound reports whether nothing is wrong by now, and the check was not skipped.
func (t *T) sound() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) == 0 && t.skipped == ""
}

// evidence is what the check said, the operator's requests, the status of the MyWebs, the operator's words.
func (t *T) evidence() []string {
	lines := slices.Clone(t.logs)
	if requests := t.Requests(0); len(requests) > 0 {
		lines = append(lines, "requests of the operator:")
		lines = append(lines, strings.Split(strings.TrimSpace(Lines(requests)), "\n  ")...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 5*time.Second)
	defer cancel()
	if webs, err := t.list(ctx); err == nil {
		for _, web := range webs {
			lines = append(lines, fmt.Sprintf("status of %s: generation=%d %v", web.Name, web.Generation, web.Status))
		}
	}
	if p := t.Operator.Process(); p != nil {
		words := p.LastLines(10, t.Namespace)
		if !p.Running() {
			words = append(words, p.LastLines(8, "")...)
			words = append(words, fmt.Sprintf("its process %v", p.Exit()))
		}
		if words = words[max(0, len(words)-10):]; len(words) > 0 {
			lines = append(append(lines, "words of the operator:"), words...)
		}
	}
	return lines
}
