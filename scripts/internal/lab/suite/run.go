package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/internal/lab/world"
)

// Parallel is how many checks run at once.
const Parallel = 6

// Run runs the checks against an operator and returns the outcomes in the order of the checks; tell is
// told each of them when it is there. Checks that share the operator run first, several at once, then
// those that need it alone, each with a process that is ready. The error is of the lab, not of the operator.
func Run(ctx context.Context, w *world.World, o *Operator, checks []Check, tell func(Outcome)) ([]Outcome, error) {
	r := &runner{world: w, operator: o, tell: tell, outcomes: make([]Outcome, len(checks))}
	defer o.Kill()
	var alone []int
	for at, c := range checks {
		switch {
		case c.NotApplicable != "":
			r.end(at, Outcome{Check: c.ID, Title: c.Title, Group: c.Group, Verdict: Skipped, Reason: c.NotApplicable})
		case c.Alone:
			alone = append(alone, at)
		default:
			r.shared = append(r.shared, at)
		}
	}
	if err := r.together(ctx, checks); err != nil {
		return nil, err
	}
	for _, at := range alone {
		if err := r.fresh(ctx); err != nil {
			return nil, err
		}
		if err := r.one(ctx, at, checks[at]); err != nil {
			return nil, err
		}
		w.Proxy.Clear()
	}
	return r.outcomes, nil
}

type runner struct {
	world    *world.World
	operator *Operator
	shared   []int

	mu       sync.Mutex
	tell     func(Outcome)
	outcomes []Outcome
}

func (r *runner) end(at int, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[at] = o
	if r.tell != nil {
		r.tell(o)
	}
}

// together runs the checks that share one process.
func (r *runner) together(ctx context.Context, checks []Check) (err error) {
	if len(r.shared) == 0 {
		return nil
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, Parallel)
	var mu sync.Mutex
	for _, at := range r.shared {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if e := r.one(ctx, at, checks[at]); e != nil {
				mu.Lock()
				defer mu.Unlock()
				err = errors.Join(err, e)
			}
		})
	}
	running.Wait()
	return err
}

// fresh sees to an operator that runs and is ready.
func (r *runner) fresh(ctx context.Context) error {
	if r.operator.Running() {
		return nil
	}
	return r.operator.Start(ctx)
}

// one runs a check in a new namespace, whose objects it removes afterwards.
func (r *runner) one(ctx context.Context, at int, c Check) error {
	name := strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(c.ID)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"}}
	ns, err := r.world.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("prepare %s: %w", c.ID, err)
	}
	within := c.Within
	if within == 0 {
		within = time.Minute
	}
	limited, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the check has %v", within))
	defer cancel()
	t := &T{World: r.world, Operator: r.operator, Namespace: ns.Name, ctx: limited, check: c, start: r.world.Ledger.Mark()}
	process := r.operator.Process()
	outcome := t.do()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !c.Alone && outcome.Verdict == Passed && !process.Running() {
		outcome.Verdict, outcome.Reason, outcome.Evidence = Failed, fmt.Sprintf("the operator %v meanwhile", process.Exit()), t.evidence()
	}
	r.end(at, outcome)
	if err := r.world.Kube.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("clean up after %s: %w", c.ID, err)
	}
	return nil
}

// FailedIDs returns the checks that failed, by ID.
func FailedIDs(outcomes []Outcome) (ids []string) {
	for _, o := range outcomes {
		if o.Verdict == Failed {
			ids = append(ids, o.Check)
		}
	}
	slices.Sort(ids)
	return ids
}
