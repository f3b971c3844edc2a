package benchmark

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// Parts of the benchmark, in their order.
const (
	Lines      = "static"
	Counts     = "counts"
	Converging = "converge"
	Arrivals   = "latency"
	Resident   = "memory"
)

// Parts lists all parts.
var Parts = []string{Lines, Counts, Converging, Arrivals, Resident}

// Options choose what the benchmark measures, and how many MyWebs and runs it uses.
type Options struct {
	// Root is the checkout.
	Root string
	// Implementations are built: Path and Flags are set. The benchmark compares the first implementation that it can
	// measure with each of the others.
	Implementations []impl.Implementation
	// Objects is how many MyWebs converge at once.
	Objects int
	// Pairs of runs that are compared.
	Pairs int
	// Rate is how many MyWebs a second arrive, Samples how many in all.
	Rate    float64
	Samples int
	// Memory are the numbers of MyWebs at which memory is measured, rising.
	Memory []int
	// Profile is a folder for processor profiles of the operators while MyWebs converge; empty for no profiles. The
	// profiles come from a separate run, which contributes to no result.
	Profile string
	// Parts to run; empty is all.
	Parts []string
	// Report receives progress messages; nil discards them.
	Report func(format string, args ...any)
}

// Usual are the usual sizes of the parts.
func Usual() Options {
	return Options{Objects: 100, Pairs: 10, Rate: 25, Samples: 1000, Memory: []int{0, 1000, 5000}}
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
	if slices.Contains(o.Parts, Converging) && min(o.Objects, o.Pairs) < 1 {
		return fmt.Errorf("%d MyWebs in %d pairs of runs cannot converge: give at least 1 of each", o.Objects, o.Pairs)
	}
	if slices.Contains(o.Parts, Arrivals) && (o.Rate <= 0 || o.Samples < 1) {
		return fmt.Errorf("%d MyWebs, %g a second, have no latency: give more than 0 of each", o.Samples, o.Rate)
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
	// own have a different CRD, so each needs a separate cluster; shared are the others.
	own, shared []impl.Implementation
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
		if i.AnotherCRD() {
			b.own = append(b.own, i)
		} else {
			b.shared = append(b.shared, i)
		}
	}
	if err := b.timed(ctx, Lines, b.static); err != nil {
		return b.result, err
	}
	if err := b.timed(ctx, Counts, b.counts); err != nil {
		return b.result, err
	}
	if err := b.times(ctx); err != nil {
		return b.result, err
	}
	return b.result, b.timed(ctx, Resident, b.memory)
}

// times runs the parts that measure time, all in one quiet fixture.
func (b *bench) times(ctx context.Context) error {
	if !slices.Contains(b.Parts, Converging) && !slices.Contains(b.Parts, Arrivals) {
		return nil
	}
	for _, i := range b.own {
		b.note("times: %s was not measured: with its CRD no other operator can run beside it.", i.Name)
	}
	if len(b.shared) == 0 {
		return nil
	}
	s, err := b.stage(ctx, b.shared)
	if err != nil {
		return err
	}
	defer b.end(s.Fixture)
	err = b.timed(ctx, Converging, func(ctx context.Context) error { return b.converge(ctx, s) })
	if err != nil {
		return err
	}
	return b.timed(ctx, Arrivals, func(ctx context.Context) error { return b.latency(ctx, s) })
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
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.Report("%s: %s was not measured: %v", part, name, err)
	b.note("%s: %s was not measured: %s", part, name, brief(err))
	return nil
}

// brief shortens an error for a note.
func brief(err error) string { return cut(strings.Join(strings.Fields(err.Error()), " "), 500) }

// able tries a function with each implementation and returns the names of those for which it succeeds.
func (b *bench) able(ctx context.Context, part string, try func(name string) error) (names []string, err error) {
	for _, i := range b.shared {
		failure := try(i.Name)
		if err := b.forgive(ctx, part, i.Name, failure); err != nil {
			return nil, err
		}
		if failure == nil {
			names = append(names, i.Name)
		}
	}
	return names, nil
}

// measured returns the entry of an implementation.
func (b *bench) measured(name string) *Measured {
	at := slices.IndexFunc(b.result.Implementations, func(m Measured) bool { return m.Name == name })
	return &b.result.Implementations[at]
}

// fixture starts a fixture for implementations that have the same CRD.
func (b *bench) fixture(ctx context.Context, impls []impl.Implementation, flags ...string) (*fixture.Fixture, error) {
	return fixture.Start(ctx, fixture.Options{Root: b.Root, CRDs: impls[0].CRDs(b.Root), APIServer: flags})
}

func (b *bench) end(w *fixture.Fixture) {
	if err := w.Stop(); err != nil {
		b.Report("warning: the lab's cluster: %v", err)
	}
}
