package page

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/operator-workshop/scripts/examine/supervisor"
)

const (
	// leastPatience is the shortest time without progress after which a page gives up, whatever its words say: a page
	// must not fail because the machine is busy.
	leastPatience = time.Minute
	// mostPatience is how many times the patience of a wait may pass in all, even with progress.
	mostPatience = 10
	// share is the part of its patience for which a program must use a processor to make progress: a second of a minute.
	// An idle operator does not.
	share = 60
	// silence is the time between two lines that report a wait to the reader.
	silence = 15 * time.Second
	// glance is the time between two looks at a program.
	glance = 20 * time.Millisecond
)

// A wait ends with an error when there was no progress for a time. A program on a busy machine needs longer than on an
// idle one, but makes progress.
type wait struct {
	// what completes "waiting until", for the reader.
	what     string
	patience time.Duration
	w        io.Writer

	begin, progress, reported time.Time
}

func newWait(w io.Writer, patience time.Duration, what string) *wait {
	now := time.Now()
	return &wait{what: what, patience: patience, w: w, begin: now, progress: now, reported: now}
}

// goesOn is called again and again until the event has happened. It prints a line from time to time, and reports
// whether to wait longer.
func (t *wait) goesOn(progress bool) bool {
	now := time.Now()
	if progress {
		t.progress = now
	}
	if now.Sub(t.reported) >= silence {
		t.reported = now
		fmt.Fprintf(t.w, "  (waiting until %s: %.0f s)\n", t.what, now.Sub(t.begin).Seconds())
	}
	return now.Sub(t.progress) < t.patience && now.Sub(t.begin) < mostPatience*t.patience
}

// over is the error of a wait that has ended.
func (t *wait) over() error {
	return fmt.Errorf("waited %s until %s, the last %s without progress", time.Since(t.begin).Round(time.Second/10),
		t.what, time.Since(t.progress).Round(time.Second/10))
}

// forProgram waits for an event of a program: its end, or a text in its output. The program makes progress while it
// prints, or uses the processor.
func (t *wait) forProgram(ctx context.Context, pid int, printed func() int64, happened func() bool) error {
	var before int64
	var used time.Duration
	looked, work := t.begin, t.patience/share
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for !happened() {
		now := printed()
		progress := now != before
		before = now
		if time.Since(looked) >= work { // the process table is long
			looked = time.Now()
			if cpu := supervisor.CPU(pid); (cpu - used).Abs() >= work {
				used, progress = cpu, true
			}
		}
		if !t.goesOn(progress) {
			return t.over()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
