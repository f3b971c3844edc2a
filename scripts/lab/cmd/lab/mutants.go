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

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
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
	unpatched := map[string]implementation{}
	next := make(chan mutants.Mutant, len(all))
	for _, m := range all {
		next <- m
		if _, built := unpatched[m.Of]; built {
			continue
		}
		if unpatched[m.Of], err = m.Unpatched.Build(ctx, l.dir); err != nil {
			return err
		}
	}
	close(next)
	begin, caught := time.Now(), 0
	var mu sync.Mutex
	err = l.inFixtures(ctx, 2, func(w *fixture.Fixture) error {
		for m := range next {
			r := mutants.Planted{Mutant: m}
			i, err := m.Build(ctx, l.dir)
			if r.Reason = fmt.Sprint(err); err == nil {
				r = mutants.Catch(ctx, w, checks.All(), m, i, unpatched[m.Of])
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
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
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("-- %d of %d mutants caught (%d s)\n", caught, len(all), int(time.Since(begin).Seconds()))
	if caught < len(all) {
		return errors.New("the check for a planted bug did not catch it")
	}
	return nil
}
