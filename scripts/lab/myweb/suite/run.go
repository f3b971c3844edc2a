// Package suite runs checks against an operator: a check is an experiment in a separate namespace, and ends with a
// verdict and, when it failed, with evidence.
package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// Parallel is how many checks run at once.
const Parallel = 6

// Run runs the checks against an operator and returns the outcomes in the order of the checks; it calls report with
// each outcome at once. Checks that share the operator run first, several at once, then those that need it alone,
// each with a process that is ready. After a check that had the operator alone, Run ends the process; otherwise the
// process continues, for the next Run. An error means that the lab failed, not the operator.
func Run(ctx context.Context, w *fixture.Fixture, o *Operator, checks []Check,
	report func(outcome.Result)) ([]outcome.Result, error) {
	r := &runner{fixture: w, operator: o, report: report, outcomes: make([]outcome.Result, len(checks)),
		turn: make(chan struct{}, 1), clock: &clock.Clock{}}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go r.clock.Run(working)
	if slices.ContainsFunc(checks, Check.endsOperator) {
		defer o.Kill()
	}
	if o.patience = idleAlone; len(checks) > Parallel {
		o.patience = idleTogether
	}
	if err := r.survey(ctx, checks); err != nil {
		return nil, err
	}
	var alone, last []int
	for at, c := range checks {
		reason := cmp.Or(c.NotApplicable, o.missing(c.Needs))
		switch {
		case reason != "":
			r.end(at, c.outcome(outcome.Skipped, reason))
		case c.Alone:
			alone = append(alone, at)
		case c.ThenAlone:
			last = append(last, at)
		default:
			r.shared = append(r.shared, at)
		}
	}
	r.others.Add(len(r.shared))
	r.shared = append(r.shared, last...)
	if err := r.together(ctx, checks); err != nil {
		return r.known(), err
	}
	for _, at := range alone {
		if err := r.fresh(ctx); err != nil {
			return r.known(), err
		}
		if err := r.one(ctx, at, checks[at]); err != nil {
			return r.known(), err
		}
		w.Proxy.Clear()
	}
	return r.outcomes, nil
}

// known are the outcomes of the checks that have ended.
func (r *runner) known() []outcome.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.outcomes), func(o outcome.Result) bool { return o.ID == "" })
}

type runner struct {
	fixture  *fixture.Fixture
	clock    *clock.Clock
	operator *Operator
	shared   []int          // the ThenAlone checks are the last ones
	others   sync.WaitGroup // of the shared checks before the ThenAlone checks
	turn     chan struct{}  // has an item while a ThenAlone check has the operator

	mu       sync.Mutex
	report   func(outcome.Result)
	outcomes []outcome.Result
}

func (r *runner) end(at int, o outcome.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = compared(o, r.operator.Impl.Fails)
	r.outcomes[at] = o
	if r.report != nil {
		r.report(o)
	}
}

// together runs the checks that share one process.
func (r *runner) together(ctx context.Context, checks []Check) error {
	if len(r.shared) == 0 {
		return nil
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	errs := make([]error, len(r.shared))
	workqueue.ParallelizeUntil(ctx, Parallel, len(r.shared), func(n int) {
		at := r.shared[n]
		errs[n] = r.one(ctx, at, checks[at])
		if !checks[at].ThenAlone {
			r.others.Done()
		}
	})
	if ctx.Err() != nil { // not every check began
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// awaitAlone returns when the other shared checks have ended, and no ThenAlone check has the operator.
func (r *runner) awaitAlone(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		r.others.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fresh ensures that the operator runs and is ready.
func (r *runner) fresh(ctx context.Context) error {
	if r.operator.Running() {
		return nil
	}
	return r.operator.Start(ctx)
}

// survey runs the survey in a separate namespace, unless it has already run, or no check runs.
func (r *runner) survey(ctx context.Context, checks []Check) error {
	o := r.operator
	if o.surveyed || !slices.ContainsFunc(checks, func(c Check) bool { return c.NotApplicable == "" }) {
		return nil
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	_, err := r.attempt(ctx, Check{ID: "survey", Run: (*T).survey})
	if !o.surveyed { // it ended early: every check runs in full
		o.AssumeAll()
	}
	return err
}

// one runs a check and reports its outcome.
func (r *runner) one(ctx context.Context, at int, c Check) error {
	o, err := r.attempt(ctx, c)
	if err == nil {
		r.end(at, o)
	}
	return err
}

// attempt runs a check in a new namespace, whose objects it removes afterwards.
func (r *runner) attempt(ctx context.Context, c Check) (o outcome.Result, err error) {
	name := strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(c.ID)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"}}
	ns, err = r.fixture.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		return o, fmt.Errorf("prepare %s: %w", c.ID, err)
	}
	within := cmp.Or(c.Within, time.Minute)
	limited, cancel := r.clock.Within(ctx, within, fmt.Errorf("the check has %v", within))
	defer cancel()
	t := &T{Trial: &frame.Trial{Fixture: r.fixture, Clock: r.clock, Ctx: limited, Namespace: ns.Name,
		User: r.operator.User.Name, Start: r.fixture.Ledger.Mark()}, Operator: r.operator, check: c, awaitAlone: r.awaitAlone}
	process := r.operator.Process()
	o = t.do()
	if t.isAlone {
		<-r.turn
	}
	if ctx.Err() != nil {
		return o, context.Cause(ctx)
	}
	if !c.endsOperator() && o.Verdict == outcome.Passed && !process.Running() {
		o.Verdict, o.Evidence = outcome.Failed, t.evidence()
		o.What = fmt.Sprintf("the operator %v meanwhile", process.Exit())
	}
	if err := r.fixture.Kube.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		return o, fmt.Errorf("clean up after %s: %w", c.ID, err)
	}
	return o, nil
}

// compared compares an outcome with the list of checks that an implementation is known to fail: an unlisted failure
// and a listed pass are both errors.
func compared(o outcome.Result, fails []string) outcome.Result {
	if !slices.Contains(fails, o.ID) {
		return o
	}
	switch o.Verdict {
	case outcome.Failed:
		o.Accepted = "as operators.yaml lists it"
	case outcome.Passed:
		o.Verdict, o.What = outcome.Failed, "it passed, but operators.yaml lists it as a failure: take it off the list"
	}
	return o
}

// Unexpected returns how many outcomes are failures that the list of implementations does not expect.
func Unexpected(outcomes []outcome.Result) (n int) {
	for _, o := range outcomes {
		if o.Verdict == outcome.Failed && o.Accepted == "" {
			n++
		}
	}
	return n
}
