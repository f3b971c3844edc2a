package benchmark

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// within is the time limit for an operator to serve n MyWebs: a tenth of a second each, and 2 minutes more.
func within(n int) time.Duration { return 2*time.Minute + time.Duration(n)*time.Second/10 }

// converge measures how long an operator takes to give many MyWebs their children and a first status. The MyWebs
// exist before the operator starts, so the measurement excludes the lab's own work. The time begins when the operator
// requests the MyWebs, according to the audit log, so it excludes the start of the process.
//
// The runs are in the order A A B, B A A: each turn gives a pair of A and B, in the order A B B A, and a pair of A
// and A as control. A bare loop with the same writes follows each run of a pair.
func (b *bench) converge(ctx context.Context, s *stage) error {
	b.note("A time to converge begins when the operator asks for MyWebs, all of which exist, and ends when the lab's "+
		"watches have seen the last first status; each MyWeb has its three children then. "+
		"The bare loop makes the same three applies and one status update of each MyWeb from %d goroutines, and is watched "+
		"in the same way.", workers)
	runs := map[string]*convergence{}
	// A first run warms up the API server, and records the operator's writes.
	names, err := b.able(ctx, Converging, func(name string) error {
		runs[name] = &convergence{}
		return s.inNamespace(ctx, func(ns string) (err error) {
			if _, err = s.converge(ctx, name, ns, b.Objects); err == nil {
				runs[name].template, err = s.capture(ctx, ns, webName(0))
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	err = b.inPairs(names, func(name string, control bool) (time.Duration, error) {
		var r run
		err := s.inNamespace(ctx, func(ns string) (err error) {
			r, err = s.converge(ctx, name, ns, b.Objects)
			return err
		})
		if err != nil || control {
			return r.took, err
		}
		bare, err := s.bare(ctx, runs[name].template, b.Objects)
		if err == nil {
			runs[name].add(r, bare)
		}
		return r.took, err
	})
	for _, name := range names {
		if c := runs[name]; len(c.times) > 0 {
			b.measured(name).Convergence = c.medians(b.Objects)
		}
	}
	if err := b.forgive(ctx, Converging, "the rest", err); err != nil {
		return err
	}
	return b.profile(ctx, s, names)
}

// inPairs times a function with the first operator and each of the others, in pairs, and records how they compare.
// With one operator it only calls the function.
func (b *bench) inPairs(names []string, do func(name string, control bool) (time.Duration, error)) error {
	if len(names) == 0 {
		return nil
	}
	others := names[1:]
	if len(others) == 0 {
		others = []string{""}
	}
	for _, other := range others {
		times := map[string][]time.Duration{}
		for pair := range b.Pairs {
			for _, turn := range turns(pair, other != "") {
				name := names[0]
				if turn == "b" {
					name = other
				}
				took, err := do(name, turn == "control")
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				times[turn] = append(times[turn], took)
			}
		}
		if other != "" {
			c := compare(fmt.Sprint("converge ", b.Objects), names[0], other, times["a"], times["b"], times["control"])
			b.result.Comparisons = append(b.result.Comparisons, c)
		}
	}
	return nil
}

// turns is the order of the runs of a pair. Without a B there is only A.
func turns(pair int, both bool) []string {
	switch {
	case !both:
		return []string{"a"}
	case pair%2 == 0:
		return []string{"control", "a", "b"}
	default:
		return []string{"b", "a", "control"}
	}
}

// A run has the measurements of MyWebs that have converged.
type run struct {
	took                time.Duration
	operator, apiServer time.Duration // processor time
}

// convergence has the times of the runs of one operator, and of the run of the bare loop after each.
type convergence struct {
	template         *template
	times, bare      []time.Duration
	operator, server []time.Duration // processor time of the operator and of the API server
	bareServer       []time.Duration // processor time of the API server during the bare loop
}

func (c *convergence) add(r, bare run) {
	c.times, c.bare = append(c.times, r.took), append(c.bare, bare.took)
	c.operator, c.server = append(c.operator, r.operator), append(c.server, r.apiServer)
	c.bareServer = append(c.bareServer, bare.apiServer)
}

// medians are the medians of the runs.
func (c *convergence) medians(objects int) *Convergence {
	median := func(times []time.Duration) time.Duration {
		return quantile(slices.Sorted(slices.Values(times)), 0.5)
	}
	each := time.Duration(objects)
	return &Convergence{Objects: objects, Took: median(c.times), Efficiency: medianOf(ratios(c.bare, c.times)),
		Operator: median(c.operator) / each, APIServer: median(c.server) / each, Bare: median(c.bareServer) / each}
}

// measure makes MyWebs in a namespace, and measures the work that lets them converge. The work returns when they have,
// with the moment at which it began.
func (s *stage) measure(ctx context.Context, namespace string, n int,
	work func([]*unstructured.Unstructured, *board, *run) (time.Time, error)) (r run, err error) {
	board, err := newBoard(ctx, s.Fixture, namespace, converged)
	if err != nil {
		return r, err
	}
	defer board.close()
	webs, err := create(ctx, s.Fixture, namespace, 0, n)
	if err != nil {
		return r, err
	}
	before, err := fixture.CPU(s.apiServer)
	if err != nil {
		return r, err
	}
	begin, err := work(webs, board, &r)
	if err != nil {
		return r, err
	}
	after, err := fixture.CPU(s.apiServer)
	r.took, r.apiServer = board.took(begin), after-before
	return r, err
}

// converge makes MyWebs in a namespace, starts an operator, waits until all have converged and kills it.
func (s *stage) converge(ctx context.Context, name, namespace string, n int) (run, error) {
	return s.measure(ctx, namespace, n, func(_ []*unstructured.Unstructured, board *board, r *run) (time.Time, error) {
		since, err := s.auditEnd()
		if err != nil {
			return time.Time{}, err
		}
		p, err := s.launch(name)
		if err != nil {
			return time.Time{}, err
		}
		defer s.end(name, p)
		if err := board.await(ctx, n, within(n), p); err != nil {
			return time.Time{}, err
		}
		if r.operator, err = fixture.CPU(p.PID()); err != nil {
			return time.Time{}, err
		}
		return s.asked(since, name)
	})
}
