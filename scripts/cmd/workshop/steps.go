package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// runSteps runs all steps, prints how long each took, and fails at the end when a step failed. The output of a step is
// printed when the step ends. The error repeats the last lines of the failed steps. It is printed last, where a reader
// looks first.
func runSteps(ctx context.Context, steps []step) error {
	start := time.Now()
	p := newProgress(os.Stdout, len(steps))
	defer p.show()()
	outputs, failures := make([]output.Buffer, len(steps)), make([]error, len(steps))
	inParallel(len(steps), func(i int) {
		if ctx.Err() != nil {
			return
		}
		s, out := steps[i], &outputs[i]
		p.begin(s.name, out)
		defer p.end(out)
		fmt.Fprintf(out, "== %s\n", s.name)
		began := time.Now()
		result := "ok"
		if failures[i] = s.run(ctx, out); failures[i] != nil {
			result = "FAILED"
			fmt.Fprintln(out, failures[i])
		}
		if ctx.Err() != nil {
			result = "interrupted"
		}
		fmt.Fprintf(out, "-- %s: %s (%.0f s)\n", s.name, result, time.Since(began).Seconds())
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []error
	for i, s := range steps {
		if failures[i] != nil {
			failed = append(failed, fmt.Errorf("failed: %s, which printed at last:\n%s", s.name, ending(&outputs[i])))
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

// progress prints the output of each step in one piece, and meanwhile what the steps that are running do.
type progress struct {
	steps int

	mu      sync.Mutex
	w       io.Writer
	wrote   time.Time // to w
	running []running
	done    int
}

// A running step has not ended. Its output is kept until then.
type running struct {
	name string
	out  *output.Buffer
}

func newProgress(w io.Writer, steps int) *progress {
	return &progress{steps: steps, w: w, wrote: time.Now()}
}

// silence is the time without output after which a reader gets a line about the steps that are running.
const silence = 30 * time.Second

// show prints that line after each silence, until stop is called.
func (p *progress) show() (stop func()) {
	ticker, stopped := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case now := <-ticker.C:
				p.print(now)
			case <-stopped:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(stopped) }
}

func (p *progress) print(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.wrote) < silence {
		return
	}
	p.wrote = now
	fmt.Fprintf(p.w, "  %d of %d steps done; running:\n", p.done, p.steps)
	for _, r := range p.running {
		printed := strings.TrimSpace(r.out.String())
		last := printed[strings.LastIndex(printed, "\n")+1:]
		fmt.Fprintf(p.w, "    %s: %.*s\n", r.name, max(20, 90-len(r.name)), output.Line(last))
	}
}

// begin reports that a step runs, whose output goes to out.
func (p *progress) begin(name string, out *output.Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, running{name, out})
}

// end prints the output of a step that has ended.
func (p *progress) end(out *output.Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.running, func(r running) bool { return r.out == out })
	p.running = slices.Delete(p.running, i, i+1)
	p.done++
	p.wrote = time.Now()
	_, _ = io.WriteString(p.w, out.String())
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

// cleanUp is the time that a program of a step has after Ctrl-C, for example to remove a cluster.
const cleanUp = 2 * time.Minute

// foreground runs a command whose output the reader sees.
func foreground(cmd *exec.Cmd, out io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}
