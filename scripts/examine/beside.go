package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// A queue has the experiments of an examination, in the order of risk. A run takes them in its lab; two runs take them side
// by side.
type queue struct {
	mu    sync.Mutex
	all   []experiment
	left  []experiment
	clock *clock.Clock
	end   time.Duration
	runs  int
}

func (q *queue) join() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.runs++
}

// next is the next experiment, with its number and its deadline. There is none when the next experiment has the other value
// of alone.
func (q *queue) next(alone bool) (e experiment, number int, deadline time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.left) == 0 || q.left[0].alone != alone {
		return e, 0, deadline, false
	}
	now := q.clock.Now()
	e, deadline = q.left[0], now+shareOf(q.left, q.end-now, q.runs)
	q.left = q.left[1:]
	return e, len(q.all) - len(q.left), deadline, true
}

// shareOf is the share of the first of some experiments in the time that is left for all of them, when some runs take them.
func shareOf(left []experiment, whole time.Duration, runs int) time.Duration {
	all := 0
	for _, e := range left {
		all += e.share
	}
	return min(whole, whole*time.Duration(runs*left[0].share)/time.Duration(all))
}

// allOf runs the experiments. Most of them run side by side in two labs, because an experiment mostly waits: it can end the
// program, and disturb its requests, and no experiment in the other lab notices. An experiment that runs alone has results
// that the others need, or needs their results.
func (r *run) allOf(chosen []experiment) error {
	q := &queue{all: chosen, left: chosen, clock: r.clock, end: r.end, runs: 1}
	if err := r.work(q, true); err != nil {
		return err
	}
	if err := r.sideBySide(q); err != nil {
		return err
	}
	return r.work(q, true)
}

// fewest is the least number of experiments for which a second lab is worth its start.
const fewest = 3

// sideBySide runs the experiments that do not run alone. Outside a pod, two processes cannot listen on one port.
func (r *run) sideBySide(q *queue) error {
	beside := slices.DeleteFunc(slices.Clone(q.left), func(e experiment) bool { return e.alone })
	if len(beside) < fewest || r.target.Fast || r.target.Outside {
		return r.work(q, false)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	second, err := r.another(ctx)
	if err != nil {
		return err
	}
	var working atomic.Bool
	ended := make(chan error, 1)
	go func() {
		ended <- second.inLab(func() error {
			working.Store(true)
			q.join()
			second.narrator = r.narrator
			err := second.work(q, false)
			if err == nil {
				second.used, second.denied, err = second.uses()
			}
			return err
		})
	}()
	err = r.work(q, false)
	var failure error
	select {
	case failure = <-ended:
	default:
		if !working.Load() {
			cancel() // there is nothing left for it
		}
		failure = <-ended
	}
	if !working.Load() {
		if ctx.Err() == nil {
			r.report.Notes = append(r.report.Notes, "The experiments did not run side by side: in a second lab, "+
				firstLine(failure.Error()))
		}
		return err
	}
	r.second = second
	r.report.merge(second.report)
	return errors.Join(err, failure)
}

// another is a run of the same subject for another lab. Until it works, it reports no progress.
func (r *run) another(ctx context.Context) (*run, error) {
	t, err := r.target.Subject.resolve()
	if err != nil {
		return nil, err
	}
	t.old = r.target.old
	second := newRun(ctx, t, Options{Bin: r.options.Bin, Progress: func(string, ...any) {}})
	second.secrets, second.period, second.clock, second.end = r.secrets, r.period, r.clock, r.end
	return second, nil
}

// work takes experiments from a queue, and runs one after the other.
func (r *run) work(q *queue, alone bool) error {
	for {
		e, number, deadline, ok := q.next(alone)
		if !ok {
			return nil
		}
		r.current, r.deadline = e, deadline
		r.heading = fmt.Sprintf("[%d/%d] %s", number, len(q.all), e.title)
		r.narrator.say(r.heading, "")
		mark := r.fixture.Ledger.Mark()
		switch err := e.run(r); {
		case err == nil:
		case r.ctx.Err() != nil:
			return err
		case errors.Is(err, errOver):
			r.add("the rest of the experiment", failedBy(err))
		default:
			return fmt.Errorf("experiment %s could not be carried out: %w", e.id, err)
		}
		r.judgeGiven()
		r.report.Requests[e.id] = r.requestsSince(mark)
	}
}

// merge adds the findings of a run in another lab, in the order of the experiments.
func (r *Report) merge(other *Report) {
	r.Findings = append(r.Findings, other.Findings...)
	ids := IDs()
	slices.SortStableFunc(r.Findings, func(a, b outcome.Result) int {
		return cmp.Compare(slices.Index(ids, a.Experiment), slices.Index(ids, b.Experiment))
	})
	maps.Copy(r.Requests, other.Requests)
}

// A narrator passes on the progress of runs that are side by side: each line is below the heading of its experiment.
type narrator struct {
	mu      sync.Mutex
	heading string
	pass    func(format string, args ...any)
}

func (n *narrator) say(heading, line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heading != heading {
		n.heading = heading
		n.pass("%s", heading)
	}
	if line != "" {
		n.pass("%s", line)
	}
}
