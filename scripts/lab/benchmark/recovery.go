package benchmark

import (
	"context"
	"time"
)

const (
	// recovered is how many MyWebs change while the operator is dead.
	recovered = 20
	// recoveries is the number of pairs of runs: the least that an interval needs.
	recoveries = 6
)

// recovery kills an operator, changes the pages of all MyWebs, starts the operator at once, and measures from the
// start of the process until all MyWebs are completed again. The runs have the same order as in converge.
func (b *bench) recovery(ctx context.Context, s *stage) error {
	b.note("Recovery: %d MyWebs, whose pages change while the operator is dead; the time begins with the start of its "+
		"process.", recovered)
	stop, err := s.standIn(ctx)
	if err != nil {
		return err
	}
	defer stop()
	names, err := b.able(ctx, Recovering, func(name string) error { _, err := s.recover(ctx, name); return err })
	if err != nil {
		return err
	}
	err = b.inPairs(names, "recovery", min(recoveries, b.Pairs), func(name string, control bool) (time.Duration, error) {
		took, err := s.recover(ctx, name)
		if err == nil && !control {
			m := b.measured(name)
			m.Recovery = append(m.Recovery, took)
		}
		return took, err
	})
	return b.forgive(ctx, Recovering, "the rest", err)
}

// recover is one run.
func (s *stage) recover(ctx context.Context, name string) (took time.Duration, err error) {
	err = s.inNamespace(ctx, func(ns string) error {
		if _, err := create(ctx, s.Fixture, ns, 0, recovered); err != nil {
			return err
		}
		if _, err := s.serve(ctx, name, ns, 1); err != nil {
			return err
		}
		if err := turnPages(ctx, s.Fixture, ns, recovered); err != nil {
			return err
		}
		took, err = s.serve(ctx, name, ns, 2)
		return err
	})
	return took, err
}

// serve starts an operator, waits until it has served all MyWebs of a namespace, kills it, and returns the time from
// the start of the process until then.
func (s *stage) serve(ctx context.Context, name, namespace string, generation int64) (time.Duration, error) {
	board, err := newBoard(ctx, s.Fixture, namespace, served(generation))
	if err != nil {
		return 0, err
	}
	defer board.close()
	p, err := s.launch(name)
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	if err := board.await(ctx, recovered, within(recovered), p); err != nil {
		return 0, err
	}
	points := board.curve(p.Started)
	return points[len(points)-1].At, nil
}
