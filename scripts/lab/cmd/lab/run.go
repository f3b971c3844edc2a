package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A part are the checks that run in one fixture, and the crash sequences of the implementation after them.
type part struct {
	checks  []suite.Check
	crashes bool
}

// options describe how checks are run.
type options struct {
	fast bool
	// run has patterns of the checks to run; empty means all.
	run    string
	rounds int
	// limit is the time limit for a part of an implementation that runs only by name; 0 means no limit. Checks that
	// do not run in that time are skipped, and errors are reported in notes: neither ends the run.
	limit time.Duration
	notes []string
}

// run runs parts against each implementation, each part in a separate fixture and several times. It runs two
// implementations at once, because a run mostly waits.
func (l *lab) run(ctx context.Context, opts *options, parts []part, report func(implementation,
	outcome.Result)) (map[string][]outcome.Result, error) {
	var mu sync.Mutex
	all, errs := map[string][]outcome.Result{}, []error{}
	workqueue.ParallelizeUntil(ctx, 2*len(parts), len(l.impls)*len(parts), func(n int) {
		i, p := l.impls[n/len(parts)], parts[n%len(parts)]
		limited, cancel := opts.limited(ctx, i)
		defer cancel()
		outcomes, err := l.rounds(limited, i, opts, p, func(o outcome.Result) {
			mu.Lock()
			defer mu.Unlock()
			report(i, o)
		})
		mu.Lock()
		defer mu.Unlock()
		all[i.Name] = append(all[i.Name], outcomes...)
		switch {
		case err != nil && i.OnlyByName && ctx.Err() == nil:
			opts.notes = append(opts.notes, fmt.Sprintf("%s: not every check was run: %v", i.Name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", i.Name, err))
		}
	})
	return all, errors.Join(append(errs, ctx.Err())...)
}

// limited limits the context to the time that an implementation gets for a part.
func (opts *options) limited(ctx context.Context, i implementation) (context.Context, context.CancelFunc) {
	if opts.limit == 0 || !i.OnlyByName {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, opts.limit, fmt.Errorf("%v are over", opts.limit))
}

// rounds finds out which checks there are, and runs them several times.
func (l *lab) rounds(ctx context.Context, i implementation, opts *options, p part,
	report func(outcome.Result)) (all []outcome.Result, err error) {
	w, err := l.fixture(ctx, i)
	if err != nil {
		return nil, err
	}
	defer l.end(w)
	o, err := suite.NewOperator(ctx, w, i, "lab-"+i.Name)
	if err != nil {
		return nil, err
	}
	checks := p.checks
	if p.crashes {
		more, wrong, err := crash.Checks(ctx, w, o)
		if err != nil {
			return nil, err
		}
		for _, o := range wrong {
			report(o)
		}
		checks, all = slices.Concat(checks, more), wrong
	}
	if opts.fast {
		checks = suite.Fast(checks)
	}
	if len(checks) > 0 && opts.run != "" {
		if checks, err = suite.Select(checks, opts.run); err != nil {
			return all, err
		}
	}
	for range opts.rounds {
		outcomes, err := suite.Run(ctx, w, o, checks, report)
		o.Kill()
		if all = append(all, outcomes...); err != nil && opts.limit > 0 {
			all = append(all, suite.NotRun(checks, outcomes, err.Error())...)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// fastCommand runs the checks that CI runs. Repeated often, it shows that the lab raises no false alarm.
func fastCommand() *cobra.Command {
	var impls string
	var times int
	cmd := &cobra.Command{Use: "fast", Short: "Run the fast subset of all families, as CI does", Args: cobra.NoArgs}
	implFlag(cmd, &impls)
	cmd.Flags().IntVar(&times, "times", 1, "how often")
	cmd.RunE = opened(&impls, func(ctx context.Context, l *lab) error {
		begin, seen := time.Now(), 0
		all, err := l.run(ctx, &options{fast: true, rounds: times},
			[]part{{checks.All(), true}},
			func(i implementation, o outcome.Result) {
				if seen++; o.Verdict == outcome.Failed {
					fmt.Printf("%s in %s\n", strings.Repeat("=", 20), i.Name)
					o.Print(cmd.OutOrStdout(), true)
				}
				if seen%100 == 0 {
					fmt.Printf("  %d checks after %d s\n", seen, int(time.Since(begin).Seconds()))
				}
			})
		if err != nil {
			return err
		}
		failed := 0
		for _, i := range l.impls {
			fmt.Printf("-- %s: %d times the fast subset: %s\n", i.Name, times, tally(all[i.Name]))
			failed += suite.Unexpected(all[i.Name])
		}
		fmt.Printf("-- %d runs, %d failures (%d s)\n", times*len(l.impls), failed, int(time.Since(begin).Seconds()))
		if failed > 0 {
			return errFailed
		}
		return nil
	})
	return cmd
}
