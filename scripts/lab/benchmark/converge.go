package benchmark

import (
	"context"
	"fmt"
	"slices"
	"time"

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
		first, err := s.converge(ctx, name, b.Objects)
		runs[name] = &convergence{template: first.template}
		return err
	})
	if err != nil {
		return err
	}
	err = b.inPairs(names, func(name string, control bool) (time.Duration, error) {
		run, err := s.converge(ctx, name, b.Objects)
		if err != nil || control {
			return run.took, err
		}
		return run.took, runs[name].add(ctx, s, run, b.Objects)
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

// convergence has the times of the runs of one operator, and of the run of the bare loop after each.
type convergence struct {
	template         *template
	times, bare      []time.Duration
	operator, server []time.Duration // processor time of the operator and of the API server
	bareServer       []time.Duration // processor time of the API server during the bare loop
}

// add notes a run, and runs the bare loop.
func (c *convergence) add(ctx context.Context, s *stage, run convergenceRun, objects int) error {
	bare, server, err := s.bare(ctx, c.template, objects)
	if err != nil {
		return err
	}
	c.times, c.bare = append(c.times, run.took), append(c.bare, bare)
	c.operator, c.server = append(c.operator, run.operator), append(c.server, run.apiServer)
	c.bareServer = append(c.bareServer, server)
	return nil
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

// A convergenceRun has the measurements of MyWebs that have converged.
type convergenceRun struct {
	took                time.Duration
	operator, apiServer time.Duration // processor time
	template            *template
}

// converge makes MyWebs, starts an operator and waits until all have converged. Then it removes all.
func (s *stage) converge(ctx context.Context, name string, n int) (run convergenceRun, err error) {
	err = s.inNamespace(ctx, func(ns string) error {
		if run, err = s.converging(ctx, name, ns, n); err != nil {
			return err
		}
		run.template, err = s.capture(ctx, ns, webName(0))
		return err
	})
	return run, err
}

// converging makes MyWebs in a namespace, starts an operator, waits until all have converged and kills it.
func (s *stage) converging(ctx context.Context, name, namespace string, n int) (run convergenceRun, err error) {
	board, err := newBoard(ctx, s.Fixture, namespace, converged)
	if err != nil {
		return run, err
	}
	defer board.close()
	if _, err := create(ctx, s.Fixture, namespace, 0, n); err != nil {
		return run, err
	}
	since, err := s.auditEnd()
	if err != nil {
		return run, err
	}
	before, err := fixture.CPU(s.apiServer)
	if err != nil {
		return run, err
	}
	p, err := s.launch(name)
	if err != nil {
		return run, err
	}
	defer s.end(name, p)
	if err := board.await(ctx, n, within(n), p); err != nil {
		return run, err
	}
	after, err := fixture.CPU(s.apiServer)
	if err != nil {
		return run, err
	}
	run.apiServer = after - before
	if run.operator, err = fixture.CPU(p.PID()); err != nil {
		return run, err
	}
	begin, err := s.asked(since, name)
	run.took = board.took(begin)
	return run, err
}
