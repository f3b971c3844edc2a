package benchmark

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// Parts of the benchmark, in their order.
const (
	Lines    = "static"
	Counts   = "counts"
	Resident = "memory"
)

// Parts lists all parts.
var Parts = []string{Lines, Counts, Resident}

// Sizes are the usual numbers of MyWebs at which memory is measured.
var Sizes = []int{0, 1000, 5000}

// Options choose what the benchmark measures.
type Options struct {
	// Root is the checkout.
	Root string
	// Implementations are built: Path and Flags are set.
	Implementations []impl.Implementation
	// Memory are the numbers of MyWebs at which memory is measured, rising.
	Memory []int
	// Parts to run; empty is all.
	Parts []string
	// Report receives progress messages; nil discards them.
	Report func(format string, args ...any)
}

func (o *Options) complete() error {
	if len(o.Implementations) == 0 {
		return fmt.Errorf("there is nothing to measure")
	}
	for _, part := range o.Parts {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("there is no part %q of the benchmark: there are %s", part, strings.Join(Parts, ", "))
		}
	}
	if len(o.Parts) == 0 {
		o.Parts = Parts
	}
	slices.Sort(o.Memory)
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	return nil
}

// A bench is a benchmark under way.
type bench struct {
	Options
	result *Result
}

// Run measures. An error means that the lab failed; the result then has the measurements before it. When an operator
// cannot do a part, Run leaves it out of that part, with a note.
func Run(ctx context.Context, o Options) (*Result, error) {
	b := &bench{Options: o, result: &Result{}}
	if err := b.complete(); err != nil {
		return b.result, err
	}
	for _, i := range b.Implementations {
		b.result.Implementations = append(b.result.Implementations, Measured{Name: i.Name})
	}
	if err := b.timed(ctx, Lines, b.static); err != nil {
		return b.result, err
	}
	if err := b.timed(ctx, Counts, b.counts); err != nil {
		return b.result, err
	}
	return b.result, b.timed(ctx, Resident, b.memory)
}

// timed runs a part, if it was requested, and reports how long it took.
func (b *bench) timed(ctx context.Context, part string, run func(context.Context) error) error {
	if !slices.Contains(b.Parts, part) {
		return nil
	}
	begin := time.Now()
	if err := run(ctx); err != nil {
		return fmt.Errorf("benchmark, %s: %w", part, err)
	}
	b.Report("%s took %.0f s", part, time.Since(begin).Seconds())
	return nil
}

// note adds a line that must accompany the numbers.
func (b *bench) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(b.result.Notes, text) {
		b.result.Notes = append(b.result.Notes, text)
	}
}

// forgive notes why an operator was left out of a part. When the operator did not cause the error, it returns the
// error.
func (b *bench) forgive(ctx context.Context, part, name string, err error) error {
	if _, isLab := errors.AsType[labError](err); isLab || err == nil || ctx.Err() != nil {
		return err
	}
	b.Report("%s: %s was not measured: %v", part, name, err)
	b.note("%s: %s was not measured: %s", part, name, brief(err))
	return nil
}

// brief shortens an error for a note.
func brief(err error) string { return cut(strings.Join(strings.Fields(err.Error()), " "), 500) }

// labError is an error of the lab, which no operator caused.
type labError struct{ error }

// fixture starts a fixture for an implementation.
func (b *bench) fixture(ctx context.Context, i impl.Implementation, flags ...string) (*fixture.Fixture, error) {
	w, err := fixture.Start(ctx, fixture.Options{Bin: filepath.Join(b.Root, "bin"), CRDs: i.CRDs(b.Root), APIServer: flags})
	if err != nil {
		return nil, labError{err}
	}
	return w, nil
}

func (b *bench) end(w *fixture.Fixture) {
	if err := w.Stop(); err != nil {
		b.Report("warning: the lab's cluster: %v", err)
	}
}
