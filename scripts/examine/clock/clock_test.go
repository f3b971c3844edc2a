package clock

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
)

func TestAdvance(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{work: time.Second, idle: time.Second, 2 * idle: time.Second / 2,
		longest * idle: time.Second / longest, time.Minute: time.Second / longest} {
		if got := advance(time.Second, took); got.Round(time.Millisecond) != want.Round(time.Millisecond) {
			t.Errorf("a piece of work that takes %v: %v, want %v", took, got, want)
		}
	}
}

// TestClockOfABusyMachine runs a clock with and without busy loops. Where other programs are busy all the time, only the
// limit is shown without the loops; TestAdvance has the others.
func TestClockOfABusyMachine(t *testing.T) {
	c := &Clock{}
	go c.Run(t.Context())
	speed := func(d time.Duration) float64 {
		begin, at := time.Now(), c.Now()
		_ = fixture.Pause(t.Context(), d)
		return float64(c.Now()-at) / float64(time.Since(begin))
	}
	best, begin := 0.0, time.Now()
	for best < 0.9 && time.Since(begin) < 20*time.Second {
		best = max(best, speed(8*interval))
	}
	t.Logf("the clock advances %.2f s in a second", best)
	if best < 0.8/longest || best > 1.2 {
		t.Error("that is outside its limits")
	}
	ctx, stop := context.WithCancel(t.Context())
	var loops []*exec.Cmd
	for range 10 * runtime.NumCPU() {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		loops = append(loops, loop)
	}
	_ = fixture.Pause(t.Context(), time.Second)
	busy := speed(3 * time.Second)
	stop()
	for _, loop := range loops {
		_ = loop.Wait()
	}
	t.Logf("beside %d busy loops, it advances %.2f s in a second", len(loops), busy)
	if busy > 0.7 {
		t.Error("that is too fast")
	}
}

// TestTimeOfAClock has a clock that stands until the test advances it.
func TestTimeOfAClock(t *testing.T) {
	c, over := &Clock{}, errors.New("over")
	ctx, cancel := c.Within(t.Context(), time.Millisecond, over)
	defer cancel()
	if err := fixture.Pause(ctx, 2*interval); err != nil {
		t.Errorf("the clock stood, and its time was over: %v", err)
	}
	looks := 0
	err := c.Eventually(t.Context(), time.Second, func() error {
		if looks++; looks == 3 {
			c.at.Add(int64(2 * time.Second))
		}
		return ErrLate
	})
	if !errors.Is(err, ErrLate) || looks < 3 || looks > 4 {
		t.Errorf("%v after %d looks", err, looks)
	}
	observe := c.Unchanged()
	for _, step := range []struct {
		number        int
		advance, want time.Duration
	}{{0, time.Second, time.Second}, {0, time.Second, 2 * time.Second}, {7, time.Second, 0},
		{7, time.Second, time.Second}} {
		c.at.Add(int64(step.advance))
		if got := observe(step.number); got != step.want {
			t.Errorf("the number %d is unchanged for %v, want %v", step.number, got, step.want)
		}
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), over) {
		t.Error(context.Cause(ctx))
	}
	parent, end := context.WithCancelCause(t.Context())
	child, cancel := c.Within(parent, time.Hour, over)
	defer cancel()
	end(over)
	if <-child.Done(); !errors.Is(context.Cause(child), over) {
		t.Error(context.Cause(child))
	}
}
