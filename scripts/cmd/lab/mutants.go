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

	"example.com/operator-workshop/scripts/internal/lab/conformance"
	"example.com/operator-workshop/scripts/internal/lab/faults"
	"example.com/operator-workshop/scripts/internal/lab/impl"
	"example.com/operator-workshop/scripts/internal/lab/mutants"
	"example.com/operator-workshop/scripts/internal/lab/world"
)

func mutantsCommand() *cobra.Command {
	var pattern string
	var verbose bool
	cmd := &cobra.Command{Use: "mutants", Short: "Plant known bugs, one at a time, and see that the lab catches them", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&pattern, "run", "", "only mutants whose name matches this regular expression")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the evidence that convicts them")
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

// mutants builds and examines them: two at once, each in one of two worlds.
func (l *lab) mutants(ctx context.Context, chosen *regexp.Regexp, verbose bool) error {
	all, err := mutants.All(l.root)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !chosen.MatchString(m.Name) })
	listed, err := impl.Listed(l.root)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begin, caught := time.Now(), 0
	next := make(chan mutants.Mutant)
	var running sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		running.Go(func() {
			w, err := l.world(ctx)
			if err != nil {
				fail(err)
				return
			}
			defer l.end(w)
			for m := range next {
				r := l.mutant(ctx, w, listed, m)
				mu.Lock()
				r.Print(os.Stdout)
				for _, o := range r.Outcomes {
					if verbose {
						o.Print(os.Stdout)
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
		return errors.New("the lab has a hole: a planted bug was not caught by the check that is there for it")
	}
	return nil
}

// mutant builds and examines one. What goes wrong with it is a mutant that was not caught.
func (l *lab) mutant(ctx context.Context, w *world.World, listed []impl.Implementation, m mutants.Mutant) mutants.Result {
	i, err := m.Build(ctx, listed, l.dir)
	if err != nil {
		return mutants.Result{Mutant: m, Reason: err.Error()}
	}
	r, err := mutants.Run(ctx, w, m, i, slices.Concat(conformance.Checks(), faults.Checks()))
	if err != nil {
		r.Caught, r.Reason = false, err.Error()
	}
	return r
}
