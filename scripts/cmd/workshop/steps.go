package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
)

// A step is one part of a target. It prints to w.
type step struct {
	name string
	run  func(ctx context.Context, w io.Writer) error
}

// atOnce is how many steps run at the same time. They often wait for a cluster: with two at once,
// two cores are idle half of the time.
const atOnce = 3

// runSteps runs all steps, prints how long each took, and fails at the end when a step failed. The output of each step
// is in one piece, in the order of the steps. The error repeats the last lines of the failed steps. It is printed last,
// where a reader looks first.
func runSteps(ctx context.Context, steps []step) error {
	start := time.Now()
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	out := newTurns(os.Stdout, names)
	defer out.showProgress()()
	last := make([]*output.Buffer, len(steps)) // of the failed steps
	inParallel(len(steps), func(i int) {
		defer out.end(i)
		s, end := steps[i], &output.Buffer{}
		w := io.MultiWriter(out.writer(i), end)
		if ctx.Err() != nil {
			return
		}
		out.begin(i)
		fmt.Fprintf(w, "== %s\n", s.name)
		began := time.Now()
		result := "ok"
		if err := s.run(ctx, w); err != nil {
			last[i], result = end, "FAILED"
			fmt.Fprintln(w, err)
		}
		if ctx.Err() != nil {
			result = "interrupted"
		}
		fmt.Fprintf(w, "-- %s: %s (%.0f s)\n", s.name, result, time.Since(began).Seconds())
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []error
	for i, s := range steps {
		if last[i] != nil {
			failed = append(failed, fmt.Errorf("failed: %s, which printed at last:\n%s", s.name, ending(last[i])))
		}
	}
	fmt.Printf("\n%d of %d steps ok, %.0f s\n", len(steps)-len(failed), len(steps), time.Since(start).Seconds())
	return errors.Join(failed...)
}

// ending returns the end of an output, in whole lines.
func ending(out *output.Buffer) string {
	const most = 4096 // bytes
	text := out.Since(max(0, out.Total()-most))
	if out.Total() > most {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// inParallel calls do for 0 to n-1, in this order and atOnce at the same time, and returns when all calls have
// returned.
func inParallel(n int, do func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	all.Wait()
}

// turns lets steps that run at the same time print one after the other, each in one piece: the output of the first step
// is shown at once, the output of the others is kept until it is their turn.
type turns struct {
	names []string

	mu      sync.Mutex
	w       io.Writer
	wrote   time.Time // to w
	now     int
	kept    []bytes.Buffer
	running map[int]bool
	ended   []bool
}

func newTurns(w io.Writer, names []string) *turns {
	n := len(names)
	return &turns{names: names, w: w, wrote: time.Now(), kept: make([]bytes.Buffer, n), running: map[int]bool{},
		ended: make([]bool, n)}
}

// silence is the time without output after which a reader gets a line about the steps that are running.
const silence = 30 * time.Second

// showProgress prints that line after each silence, until stop is called.
func (t *turns) showProgress() (stop func()) {
	ticker, stopped := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case now := <-ticker.C:
				t.progress(now)
			case <-stopped:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(stopped) }
}

func (t *turns) progress(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.wrote) < silence {
		return
	}
	t.wrote = now
	var names []string
	for _, i := range slices.Sorted(maps.Keys(t.running)) {
		names = append(names, t.names[i])
	}
	done := len(slices.DeleteFunc(slices.Clone(t.ended), func(ended bool) bool { return !ended }))
	fmt.Fprintf(t.w, "  %d of %d steps done; running: %s\n", done, len(t.names), strings.Join(names, ", "))
}

// begin reports that step number i runs.
func (t *turns) begin(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[i] = true
}

// writer returns the writer for step number i.
func (t *turns) writer(i int) io.Writer { return turn{t, i} }

type turn struct {
	*turns
	i int
}

func (t turn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.i == t.now {
		t.wrote = time.Now()
		return t.w.Write(p)
	}
	return t.kept[t.i].Write(p)
}

// end reports that step number i prints no more.
func (t *turns) end(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[i] = true
	delete(t.running, i)
	for t.now < len(t.ended) && t.ended[t.now] {
		if t.now++; t.now < len(t.kept) {
			t.wrote = time.Now()
			_, _ = t.kept[t.now].WriteTo(t.w)
		}
	}
}

// run runs a program in a folder of the repository.
func (w workshop) run(ctx context.Context, out io.Writer, dir, program string, args ...string) error {
	cmd := w.program(ctx, program, args...)
	cmd.Dir = filepath.Join(w.root, dir)
	return foreground(cmd, out)
}

// makeStep is a step that makes targets of a chapter.
func (w workshop) makeStep(name, dir string, args ...string) step {
	return step{name, func(ctx context.Context, out io.Writer) error {
		return w.run(ctx, out, dir, "make", append([]string{"--no-print-directory"}, args...)...)
	}}
}

// foreground runs a command whose output the reader sees. Ctrl-C reaches it as SIGINT, with time to
// clean up.
func foreground(cmd *exec.Cmd, out io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd.Run()
}
