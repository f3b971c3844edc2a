package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/internal/output"
)

// A step is one part of a target. It prints to w.
type step struct {
	name string
	run  func(ctx context.Context, w io.Writer) error
}

// atOnce is how many steps, or groups of pages, run at the same time. They often wait for a cluster: with two at once,
// two cores are idle half of the time.
const atOnce = 3

// runSteps runs all steps, prints how long each took, and fails at the end when a step failed. The output of each step
// is in one piece, in the order of the steps. The error repeats the last lines of the failed steps. It is printed last,
// where a reader looks first.
func runSteps(ctx context.Context, steps []step) error {
	start := time.Now()
	out := newTurns(os.Stdout, len(steps))
	last := make([]*output.Buffer, len(steps)) // of the failed steps
	inParallel(len(steps), func(i int) {
		defer out.end(i)
		s, end := steps[i], &output.Buffer{}
		w := io.MultiWriter(out.writer(i), end)
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(w, "== %s\n", s.name)
		began := time.Now()
		result := "ok"
		if err := s.run(ctx, w); err != nil {
			last[i], result = end, "FAILED"
			fmt.Fprintln(w, err)
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
	mu    sync.Mutex
	w     io.Writer
	now   int
	kept  []bytes.Buffer
	ended []bool
}

func newTurns(w io.Writer, n int) *turns {
	return &turns{w: w, kept: make([]bytes.Buffer, n), ended: make([]bool, n)}
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
		return t.w.Write(p)
	}
	return t.kept[t.i].Write(p)
}

// end reports that step number i prints no more.
func (t *turns) end(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[i] = true
	for t.now < len(t.ended) && t.ended[t.now] {
		if t.now++; t.now < len(t.kept) {
			_, _ = t.kept[t.now].WriteTo(t.w)
		}
	}
}

// command is a step that runs a program in a folder of the repository.
func (w workshop) command(name, dir, program string, args ...string) step {
	return step{name, func(ctx context.Context, out io.Writer) error {
		if program == "make" {
			args = append([]string{"--no-print-directory"}, args...)
		}
		cmd := exec.CommandContext(ctx, program, args...)
		if strings.Contains(program, string(filepath.Separator)) {
			cmd = exec.CommandContext(ctx, filepath.Join(w.root, program), args...)
		}
		cmd.Dir = filepath.Join(w.root, dir)
		cmd.Env = w.chapterEnv()
		return foreground(cmd, out)
	}}
}

func (w workshop) goCommand(ctx context.Context, out io.Writer, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(w.root, dir)
	cmd.Env = w.chapterEnv()
	return foreground(cmd, out)
}

// foreground runs a command whose output the reader sees. Ctrl-C reaches it as SIGINT, with time to
// clean up.
func foreground(cmd *exec.Cmd, out io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd.Run()
}
