package main

import (
	"context"
	"time"
)

// The bounds of the exponential backoff between two tries.
const firstBackoff, lastBackoff = 50 * time.Millisecond, 2 * time.Second

// poll tries until a try succeeds, which it reports as done, or fails, or the limit has passed. It tries at least once.
func poll(ctx context.Context, limit time.Duration, try func() (done bool, err error)) (done bool, err error) {
	deadline := time.Now().Add(limit)
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		if done, err = try(); done || err != nil || time.Now().After(deadline) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(backoff):
		}
	}
}
