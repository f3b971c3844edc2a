package suite

import (
	"cmp"
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

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A Check is one experiment.
type Check struct {
	// ID names the check, in reports and for -run: "behaviour/05-edited-field", "fault/17-child-deleted".
	ID string
	// Group is the number of the behaviour or of the row in the fault catalogue.
	Group string
	// Title is the expectation of the check, in one line.
	Title string
	// Alone checks have the operator to themselves: they stop it, or disturb more than their namespace.
	Alone bool
	// ThenAlone checks begin beside others, and have the operator to themselves when AwaitAlone has returned. At the end
	// the operator runs. Within includes the time of the other checks.
	ThenAlone bool
	// Fast checks belong to the subset that CI runs on every change.
	Fast bool
	// Within is the deadline; 0 is a minute.
	Within time.Duration
	// Needs are properties that a program must have for the check to apply.
	Needs []Need
	// NotApplicable is why the check applies to no implementation: it is printed as skipped.
	NotApplicable string
	// Run executes the check. The operator runs and is ready when Run begins; an Alone check may leave it in any
	// state.
	Run func(t *T)
}

// endsOperator reports whether the check may end or replace the operator's process.
func (c Check) endsOperator() bool { return c.Alone || c.ThenAlone }

// outcome is an outcome of the check, without evidence.
func (c Check) outcome(v outcome.Verdict, why string) outcome.Result {
	family, _, _ := strings.Cut(c.ID, "/")
	return outcome.Result{ID: c.ID, Experiment: strings.TrimSuffix(family+"/"+c.Group, "/"), Title: c.Title, Verdict: v,
		What: why, Needs: c.Needs}
}

// NotRun are outcomes for the checks that did not run.
func NotRun(checks []Check, known []outcome.Result, reason string) (all []outcome.Result) {
	for _, c := range checks {
		if !slices.ContainsFunc(known, func(o outcome.Result) bool { return o.ID == c.ID }) {
			all = append(all, c.outcome(outcome.Skipped, reason))
		}
	}
	return all
}

// Select returns the checks whose ID matches one of the patterns, separated by commas; all checks for an empty
// string.
func Select(checks []Check, patterns string) ([]Check, error) {
	r, err := regexp.Compile(strings.ReplaceAll(strings.Trim(patterns, ", "), ",", "|"))
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !r.MatchString(c.ID) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no check matches %q: `bin/lab checks` lists them", patterns)
	}
	return chosen, nil
}

// Fast returns the checks of the fast subset.
func Fast(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !c.Fast })
}

// T is a running check. Methods that can fail end the check, unless their comment states otherwise; call these only
// from the goroutine of Run.
type T struct {
	*frame.Trial
	// Operator is the operator under examination.
	Operator *Operator

	check      Check
	awaitAlone func(context.Context) error
	isAlone    bool // since AwaitAlone

	mu       sync.Mutex
	failures []string
	at       int       // in the ledger, of the first failure
	act      act       // the last one
	did      string    // the last act before the first failure
	reaction string    // of the operator to it
	awaited  time.Time // when Eventually last had to wait, or an act began
	skipped  string
	counts   map[string]map[string]int
	memory   int64
	notes    []string
}

// Errorf notes a failure and continues. It may be called from any goroutine.
func (t *T) Errorf(format string, args ...any) {
	t.fail(t.Fixture.Ledger.Newest(), fmt.Sprintf(format, args...))
}

// Unexpected notes requests that the operator must not send, and continues.
func (t *T) Unexpected(requests []ledger.Entry, format string, args ...any) {
	t.fail(requests[0].N, fmt.Sprintf(format, args...)+":"+Lines(requests))
}

func (t *T) fail(at int, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures = append(t.failures, reason); len(t.failures) == 1 {
		t.at, t.did = at, t.act.text
		t.reaction = t.reactionTo(t.act)
	}
}

// Fatalf notes a failure and ends the check.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Counted adds the numbers of requests of a phase to the result, whatever the verdict.
func (t *T) Counted(phase string, requests map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]map[string]int{}
	}
	t.counts[phase] = requests
}

// ReadMemory adds the resident set of the operator to the result.
func (t *T) ReadMemory() {
	memory, err := fixture.RSS(t.Operator.Process().PID())
	t.Must(err, "read the memory of the operator")
	t.memory = memory
}

// Note adds a line to the evidence, whatever the verdict.
func (t *T) Note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Must ends the check when err is not nil; doing describes the attempt.
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

// Eventually returns when observe returns nil. When that takes too long, it ends the check; 0 is 20 s. Time in which the
// operator worked is added, so a slow disk fails no program; the time of the check is the limit.
func (t *T) Eventually(what string, within time.Duration, observe func() error) {
	within = cmp.Or(within, 20*time.Second)
	begin, worked := time.Now(), time.Duration(0)
	last := begin
	look := func() error {
		err := observe()
		if err != nil {
			t.awaited = time.Now()
			t.mustRun(what, err)
		}
		if since := time.Since(last); err != nil && since > endlessLook {
			t.mustStop(t.act.mark, mostBefore)
			if t.works() {
				worked += since
			}
			last = time.Now()
		}
		return err
	}
	err := t.Trial.Eventually(within, look)
	for err != nil && t.Ctx.Err() == nil && worked > 0 {
		more := worked
		worked = 0
		err = t.Trial.Eventually(more, look)
		within = time.Since(begin).Round(time.Second)
	}
	if err != nil {
		t.mustStop(t.act.mark, mostWrites)
	}
	if err != nil && t.Ctx.Err() != nil {
		t.Fatalf("expected that %s; but not after %v, when the time of the check was over: %v", what,
			time.Since(begin).Round(time.Second), err)
	} else if err != nil {
		t.Fatalf("expected that %s; but not within %v: %v", what, within, err)
	}
}

// AwaitAlone returns when all other checks have ended, except those that wait for the same. Only a ThenAlone check may
// call it.
func (t *T) AwaitAlone() {
	t.Must(t.awaitAlone(t.Ctx), "wait for the other checks")
	t.isAlone = true
}

// mustRun ends the check when the operator has ended by itself, because the awaited event will not happen. An Alone
// check may have ended it.
func (t *T) mustRun(what string, err error) {
	if p := t.Operator.Process(); p != nil && !p.Running() && !t.check.endsOperator() {
		t.Fatalf("expected that %s; but the operator %v, and %v", what, p.Exit(), err)
	}
}

// Pause waits. It is for windows in which no event may happen; checks wait for expected events with Eventually. When
// the check's deadline cuts a window short, the window proves nothing: the check fails.
func (t *T) Pause(d time.Duration) {
	if err := fixture.Pause(t.Ctx, d); err != nil {
		t.Fatalf("the time of the check is over, inside a window of %v: %v", d, err)
	}
}

// Rule adds a rule for the operator's requests in the check's namespace (the rules of an Alone check may reach
// further: Everywhere). It is released when the check ends. A rule that never fired fails the check, because then the
// check has shown nothing.
func (t *T) Rule(r proxy.Rule) *proxy.Fault {
	if r.Namespace == "" {
		r.Namespace = t.Namespace
	}
	return t.Everywhere(r)
}

// AwaitFault returns when a rule has disturbed n requests.
func (t *T) AwaitFault(f *proxy.Fault, n int, within time.Duration) {
	within = t.limit(within, t.Operator.reports)
	ctx, cancel := t.Clock.Within(t.Ctx, within, fmt.Errorf("%v are over", within))
	defer cancel()
	if err := f.Await(ctx, n); err != nil {
		t.Fatalf("the fault did not come about: %v", err)
	}
}

// Stop pauses a component of the cluster until resume is called, or the check ends. Only an Alone check may call it,
// because the component serves all namespaces: without fixture.ControllerManager, no pod is created or deleted;
// without fixture.Scheduler, no pod becomes ready.
func (t *T) Stop(component string) (resume func()) {
	t.Cleanup(func(context.Context) { _ = t.Fixture.Signal(component, syscall.SIGCONT) })
	t.Must(t.Fixture.Signal(component, syscall.SIGSTOP), "stop "+component)
	return func() { t.Must(t.Fixture.Signal(component, syscall.SIGCONT), "let "+component+" go on") }
}

// steady is how long an operator must not write to be in steady state.
const steady = 300 * time.Millisecond

// AwaitQuiet returns when the operator has written nothing in the namespace for a time.
func (t *T) AwaitQuiet(window time.Duration) { t.quietSince(time.Now(), window) }

func (t *T) quietSince(begin time.Time, window time.Duration) {
	ctx, cancel := t.Clock.Within(t.Ctx, 30*time.Second, errors.New("30 s are over"))
	defer cancel()
	mark := t.Mark()
	go t.cancelWhenEndless(ctx, mark, cancel)
	err := t.Fixture.Ledger.AwaitQuietSince(ctx, begin, window, t.Mine(0, wire.Writes...))
	for err == nil && t.rhythm() > window {
		window = t.rhythm()
		err = t.Fixture.Ledger.AwaitQuietSince(ctx, t.act.since, window, t.Mine(0, wire.Writes...))
	}
	if err != nil {
		t.mustStop(mark, mostWrites)
		t.Fatalf("expected that the operator stops writing; but it does not stop writing: %v: %s", err, Lines(t.Writes(0)))
	}
}

// rhythm is a time in which an operator that has written one object again and again since the last act would write it once
// more. On a slow machine, a program that writes without end looks quiet between two writes.
func (t *T) rhythm() (longest time.Duration) {
	const often, times = 4, 3
	last, count := map[string]time.Time{}, map[string]int{}
	gaps := map[string]time.Duration{}
	for _, e := range t.Changes(t.act.mark) {
		object := e.FullResource() + " " + e.Name
		if !last[object].IsZero() {
			gaps[object] = max(gaps[object], e.Start.Sub(last[object]))
		}
		if last[object], count[object] = e.Start, count[object]+1; count[object] >= often {
			longest = max(longest, times*gaps[object])
		}
	}
	return min(longest, 10*time.Second)
}

// StaysQuiet checks that the operator writes no object in the namespace for a time: in steady state there is no
// write, not even one that changes nothing.
func (t *T) StaysQuiet(window time.Duration) {
	mark := t.Mark()
	t.Pause(window)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Unexpected(writes, "expected no write while nothing happens; but in %v the operator sent %s", window, Count(len(writes), "write"))
	}
}

// Count is a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Lines formats entries, each on a separate line, for the end of a message; of many, the first and the last.
func Lines(entries []ledger.Entry) string {
	lines := lines(entries)
	if len(lines) > 12 {
		lines = slices.Concat(lines[:6], []string{fmt.Sprintf("… %d more …", len(lines)-12)}, lines[len(lines)-6:])
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// lines formats entries without the name of the check's namespace.
func lines(entries []ledger.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, strings.ReplaceAll(e.String(), e.Namespace+"/", ""))
	}
	return all
}

// do runs the check and returns its outcome.
func (t *T) do() (o outcome.Result) {
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
			if t.Ctx.Err() != nil && t.sound() {
				t.Errorf("the time of the check is over: %v", context.Cause(t.Ctx))
			}
		}()
		t.check.Run(t)
	}()
	<-done
	o = t.check.outcome(outcome.Passed, "")
	o.Took = time.Since(begin).Round(time.Millisecond)
	o.Memory = t.memory
	o.Namespace, o.At, o.End, o.Did, o.Reaction, o.Requests = t.Namespace, t.at, end, t.did, t.reaction, t.counts
	switch {
	case len(t.failures) > 0:
		o.Verdict, o.What, o.Evidence = outcome.Failed, strings.Join(t.failures, "\n"), t.evidence()
	case t.skipped != "":
		o.Verdict, o.What = outcome.Skipped, t.skipped
	}
	o.Evidence = append(o.Evidence, t.notes...)
	return o
}

func (t *T) cleanup() {
	for _, f := range t.Faults() {
		f.Release()
		if f.Fired() == 0 && t.sound() {
			t.Errorf("nothing was shown: the rule %q never fired (%d requests matched)", f.Name(), f.Matched())
		}
	}
	t.End(context.WithoutCancel(t.Ctx))
}

// sound reports whether the check has no failure so far, and was not skipped.
func (t *T) sound() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) == 0 && t.skipped == ""
}

// evidence lists the operator's requests, the status of the MyWebs, and the operator's output.
func (t *T) evidence() []string {
	var lines []string
	if requests := t.Requests(0); len(requests) > 0 {
		lines = append(lines, "requests of the operator:")
		lines = append(lines, strings.Split(strings.TrimSpace(Lines(requests)), "\n  ")...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Ctx), 5*time.Second)
	defer cancel()
	if webs, err := t.list(ctx); err == nil {
		for _, web := range webs {
			lines = append(lines, fmt.Sprintf("status of %s: generation=%d %v", web.Name, web.Generation, web.Status))
		}
	}
	if p := t.Operator.Process(); p != nil {
		words := p.LastLines(10, t.Namespace)
		if len(words) == 0 {
			words = p.LastLines(8, "error") // an error at the start names no namespace
		}
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
