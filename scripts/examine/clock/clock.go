// Package clock measures time in what the machine gives.
package clock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// A Clock measures how long the machine has worked for the lab. On an idle machine it advances as the wall time does. If
// other programs want the processors, it advances more slowly, so the same experiments take longer, and a wait that is
// over is no fault of the machine.
//
// At intervals, the clock wants a processor for a short time, and advances as fast as it gets that time. Two other
// measures are simpler, and wrong. A timer is hardly late beside busy programs, because a scheduler prefers a program that
// slept. And /proc/pressure/cpu counts the lab's own programs, on Linux.
type Clock struct{ at atomic.Int64 }

const (
	// interval is the time between two pieces of work, and work is processor time. A scheduler interrupts such a piece.
	interval, work = 250 * time.Millisecond, 5 * time.Millisecond
	// idle is how long a piece may take on an idle machine: beside one program of the lab, it gets half of a processor.
	idle = 2 * work
	// longest is how many times as long as on an idle machine the experiments may take. With three, at a load of 30 on two
	// processors, half of the experiments had no time.
	longest = 6
)

// Run advances the clock until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	runtime.LockOSThread() // the processor time is that of one thread
	defer runtime.UnlockOSThread()
	for last := time.Now(); fixture.Pause(ctx, interval) == nil; {
		due := last.Add(interval)
		for begin := processorTime(); processorTime()-begin < work && time.Since(due) < longest*idle; {
		}
		now := time.Now()
		c.at.Add(int64(advance(now.Sub(last), now.Sub(due))))
		last = now
	}
}

// advance is how far the clock advances in a time in which a piece of work took so long.
func advance(elapsed, took time.Duration) time.Duration {
	took = min(max(took, idle), longest*idle)
	return time.Duration(float64(elapsed) * float64(idle) / float64(took))
}

// processorTime is how long this thread has had a processor.
func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// Now is how far the clock has advanced.
func (c *Clock) Now() time.Duration { return time.Duration(c.at.Load()) }

// Within is context.WithTimeoutCause by this clock.
func (c *Clock) Within(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	end := c.Now() + d
	go func() {
		for left := d; left > 0 && fixture.Pause(ctx, max(left, interval)) == nil; left = end - c.Now() {
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Eventually is fixture.Eventually by this clock.
func (c *Clock) Eventually(ctx context.Context, within time.Duration, observe func() error) error {
	end := c.Now() + within
	return fixture.Until(ctx, func() bool { return c.Now() > end }, observe)
}

// Unchanged returns a function that observes a number. It returns how long the number has been the same,
// by this clock.
func (c *Clock) Unchanged() (observe func(n int) time.Duration) {
	last, since := 0, c.Now()
	return func(n int) time.Duration {
		if n != last {
			last, since = n, c.Now()
		}
		return c.Now() - since
	}
}

// ErrLate says that a wait was over.
var ErrLate = errors.New("the time is over")
