package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// limiter lets operators converge under client-side limits, with a bucket that holds one request, and holds
// the time against what the limit allows. Four requests a MyWeb make eight seconds.
func (b *bench) limiter(ctx context.Context, s *stage) error {
	b.note("Limiter: the time is that from the first write to the last status, by the audit log; watches do not count " +
		"against a limit. Predicted is (requests - 1) / QPS. Unlimited is the operator without these flags.")
	_, err := b.able(ctx, Limits, func(name string) error {
		i := s.operators[name].Impl
		if !i.Has("kube-api-qps") || !i.Has("kube-api-burst") {
			return errors.New("it has no flags --kube-api-qps and --kube-api-burst")
		}
		for _, qps := range []float64{5, 20, 0} {
			webs, args := 40, []string(nil)
			if qps > 0 {
				webs, args = int(2*qps), []string{fmt.Sprint("--kube-api-qps=", qps), "--kube-api-burst=1"}
			}
			l, err := s.limited(ctx, name, qps, min(webs, b.Objects), args)
			if err != nil {
				return fmt.Errorf("%g requests a second: %w", qps, err)
			}
			m := b.measured(name)
			m.Limiter = append(m.Limiter, l)
		}
		return nil
	})
	return err
}

// predicted is how long requests take when one is free and each other waits for its part of a second.
func predicted(requests int, qps float64) time.Duration {
	if qps == 0 || requests < 1 {
		return 0
	}
	return time.Duration(float64(requests-1) / qps * float64(time.Second))
}

// Agrees reports whether the time was within 10 % of what was predicted.
func (l Limited) Agrees() bool {
	return l.Predicted > 0 && 10*(l.Measured-l.Predicted).Abs() <= l.Predicted
}

// limited lets an operator converge.
func (s *stage) limited(ctx context.Context, name string, qps float64, n int, args []string) (l Limited, err error) {
	err = s.inNamespace(ctx, func(ns string) error {
		seen, err := s.converging(ctx, name, ns, n, args...)
		if err != nil {
			return err
		}
		events, err := s.updated(ctx, seen.since, name, n)
		if err != nil {
			return err
		}
		requests, took := span(events)
		l = Limited{QPS: qps, Requests: requests, Predicted: predicted(requests, qps), Measured: took}
		return nil
	})
	return l, err
}

// updated returns an operator's requests once n status updates are among them. A watch tells of an update before
// the audit log does.
func (s *stage) updated(ctx context.Context, since int64, name string, n int) ([]fixture.AuditEvent, error) {
	for late := time.Now().Add(5 * time.Second); ; {
		events, err := s.requests(since, name)
		updates := 0
		for _, e := range events {
			if e.ObjectRef.Subresource == "status" {
				updates++
			}
		}
		if err != nil || updates >= n {
			return events, err
		}
		if time.Now().After(late) {
			return nil, fmt.Errorf("the audit log has %d status updates for %d MyWebs", updates, n)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// span counts the requests from the first write to the last status, watches apart, and returns how long they
// took.
func span(events []fixture.AuditEvent) (requests int, took time.Duration) {
	var first, last time.Time
	for _, e := range events {
		if e.Request().IsWrite() && (first.IsZero() || e.RequestReceivedTimestamp.Before(first)) {
			first = e.RequestReceivedTimestamp
		}
		if e.ObjectRef.Subresource == "status" && e.RequestReceivedTimestamp.After(last) {
			last = e.RequestReceivedTimestamp
		}
	}
	for _, e := range events {
		at := e.RequestReceivedTimestamp
		if e.Verb != "watch" && !at.Before(first) && !at.After(last) {
			requests++
		}
	}
	return requests, last.Sub(first)
}
