package benchmark

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// latency creates MyWebs at moments that are fixed beforehand. It measures from the planned moment, not from the
// actual creation, until the MyWeb is completed: when an operator falls behind, later MyWebs wait longer, and the
// latencies show it. Each operator gets half of the MyWebs; then each gets the other half, the last operator first.
func (b *bench) latency(ctx context.Context, s *stage) error {
	b.note("Latencies hold the lab's own part: the creation, the stand-in for the Deployment controller, the " +
		"watch that tells.")
	samples := map[string][]time.Duration{}
	half := func(name string, arrivals int) error {
		more, err := s.arrivals(ctx, name, b.Rate, arrivals)
		samples[name] = append(samples[name], more...)
		if first, last, grew := backlog(more); grew {
			b.note("Latency: %s did not keep up with %g MyWebs a second: the latency grew from %s to %s while they "+
				"arrived, so it depends on the length of the run.",
				name, b.Rate, seconds(first), seconds(last))
		}
		return err
	}
	names, err := b.able(ctx, Arrivals, func(name string) error { return half(name, b.Samples/2) })
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if err := b.forgive(ctx, Arrivals, name+", second half,", half(name, b.Samples-b.Samples/2)); err != nil {
			return err
		}
		all := slices.Sorted(slices.Values(samples[name]))
		l := &Latency{Rate: b.Rate, Samples: len(all), P50: quantile(all, 0.5)}
		if len(all) >= 1000 {
			l.P99 = quantile(all, 0.99)
		} else {
			b.note("Latency: there is no p99 of less than 1000 samples.")
		}
		b.measured(name).Latency = l
	}
	return nil
}

// backlog reports whether latencies, in the order of the arrivals, kept growing: it compares the medians of the first
// and the last quarter.
func backlog(samples []time.Duration) (first, last time.Duration, grew bool) {
	quarter := len(samples) / 4
	first = quantile(slices.Sorted(slices.Values(samples[:quarter])), 0.5)
	last = quantile(slices.Sorted(slices.Values(samples[len(samples)-quarter:])), 0.5)
	return first, last, last > time.Second && last > 3*first
}

// watched starts an operator, the stand-in, and a board of the MyWebs that the operator serves in a namespace; end ends
// them.
func (s *stage) watched(ctx context.Context, name, namespace string) (*board, *fixture.Process, func(), error) {
	goal := served(1)
	if s.noStatus {
		goal = complete
	}
	stop, err := s.standIn(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := newBoard(ctx, s.Fixture, namespace, goal)
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	p, err := s.launch(name)
	if err != nil {
		b.close()
		stop()
		return nil, nil, nil, err
	}
	return b, p, func() { p.Kill(); b.close(); stop() }, nil
}

// arrivals returns the latencies of n MyWebs, in the order in which they arrived.
func (s *stage) arrivals(ctx context.Context, name string, rate float64, n int) (samples []time.Duration, err error) {
	err = s.inNamespace(ctx, func(ns string) error {
		board, p, end, err := s.watched(ctx, name, ns)
		if err != nil {
			return err
		}
		defer end()
		// The very first MyWeb waits for the operator to be ready.
		if _, err := createOne(ctx, s.Fixture, ns, "first"); err != nil {
			return err
		}
		if err := board.await(ctx, 1, within(1), p); err != nil {
			return err
		}
		planned, err := s.arrive(ctx, ns, rate, n)
		if err != nil {
			return err
		}
		if err := board.await(ctx, n+1, within(n), p); err != nil {
			return err
		}
		for i, at := range planned {
			samples = append(samples, board.when(webName(i)).Sub(at))
		}
		return nil
	})
	return samples, err
}

// arrive creates MyWebs at a fixed rate and returns the planned moments.
func (s *stage) arrive(ctx context.Context, namespace string, rate float64, n int) (planned []time.Time, err error) {
	var creating sync.WaitGroup
	errs := make([]error, n)
	begin := time.Now().Add(100 * time.Millisecond)
	for i := range n {
		at := begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		planned = append(planned, at)
		if err := fixture.Pause(ctx, time.Until(at)); err != nil {
			return nil, err
		}
		creating.Go(func() { _, errs[i] = createOne(ctx, s.Fixture, namespace, webName(i)) })
	}
	creating.Wait()
	return planned, errors.Join(errs...)
}
