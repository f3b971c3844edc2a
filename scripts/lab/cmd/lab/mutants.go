package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/mutants"
)

func mutantsCommand() *cobra.Command {
	var pattern string
	var verbose bool
	cmd := &cobra.Command{Use: "mutants", Short: "Plant known bugs, one at a time, and see that the lab catches them",
		Args: cobra.NoArgs}
	cmd.Flags().StringVar(&pattern, "run", "", "only mutants whose name matches this regular expression")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the evidence of the checks that caught them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		chosen, err := regexp.Compile(pattern)
		if err != nil {
			return fmt.Errorf("--run: %w", err)
		}
		l, err := empty()
		if err != nil {
			return err
		}
		defer l.close()
		return l.mutants(cmd.Context(), chosen, verbose)
	}
	return cmd
}

// mutants builds and examines mutants: two at once, each in one of two fixtures.
func (l *lab) mutants(ctx context.Context, chosen *regexp.Regexp, verbose bool) error {
	all, err := mutants.All(l.root)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !chosen.MatchString(m.Name) })
	if len(all) == 0 {
		return fmt.Errorf("--run %q matches no mutant: the names are those of the files in scripts/lab/myweb/mutants/patches",
			chosen)
	}
	listed, err := impl.Listed(l.root)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	unpatched := l.builtOnce(listed)
	begin, caught := time.Now(), 0
	next := make(chan mutants.Mutant)
	var running sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		running.Go(func() {
			w, err := l.fixture(ctx, implementation{})
			if err != nil {
				fail(err)
				return
			}
			defer l.end(w)
			bench := &mutants.Bench{Fixture: w, Unpatched: unpatched, Checks: checks.All()}
			for m := range next {
				r := l.mutant(ctx, bench, listed, m)
				mu.Lock()
				r.Print(os.Stdout)
				for _, o := range r.Outcomes {
					if verbose {
						o.Print(os.Stdout, true)
					}
				}
				if r.Caught {
					caught++
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		select {
		case next <- m:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	fmt.Printf("-- %d of %d mutants caught (%d s)\n", caught, len(all), int(time.Since(begin).Seconds()))
	if caught < len(all) {
		return errors.New("the check for a planted bug did not catch it")
	}
	return nil
}

// builtOnce returns a function that builds the operators of the list, each at its first use.
func (l *lab) builtOnce(listed []implementation) func(context.Context, string) (implementation, error) {
	var mu sync.Mutex
	built := map[string]implementation{}
	return func(ctx context.Context, name string) (i implementation, err error) {
		mu.Lock()
		defer mu.Unlock()
		if i, done := built[name]; done {
			return i, nil
		}
		at := slices.IndexFunc(listed, func(i implementation) bool { return i.Name == name })
		if at < 0 {
			return i, fmt.Errorf("%s is not listed", name)
		}
		if i, err = listed[at].Build(ctx, l.dir); err == nil {
			built[name] = i
		}
		return i, err
	}
}

// mutant builds and examines one mutant. An error with it counts as a mutant that was not caught.
func (l *lab) mutant(ctx context.Context, bench *mutants.Bench, listed []implementation,
	m mutants.Mutant) mutants.Result {
	i, err := m.Build(ctx, listed, l.dir)
	if err != nil {
		return mutants.Result{Mutant: m, Reason: err.Error()}
	}
	r, err := bench.Run(ctx, m, i)
	if err != nil {
		r.Caught, r.Reason = false, err.Error()
	}
	return r
}
