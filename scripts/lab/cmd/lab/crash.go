package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func crashCommand() *cobra.Command {
	return suiteCommand("crash", "Kill the operator after every write, in every combination",
		func(ctx context.Context, l *lab, i implementation, choose chooser) ([]suite.Outcome, error) {
			return l.crash(ctx, i, choose)
		})
}

// crash enumerates the crash sequences of an implementation and runs the chosen ones.
func (l *lab) crash(ctx context.Context, i implementation, choose chooser) ([]suite.Outcome, error) {
	w, o, err := l.prepare(ctx, i)
	if err != nil {
		return nil, err
	}
	defer l.end(w)
	checks, wrong, err := crash.Checks(ctx, w, o)
	if err != nil || wrong != nil {
		for _, o := range wrong {
			if l.print != nil {
				l.print(o)
			}
		}
		return wrong, err
	}
	if checks, err = choose(checks); err != nil {
		return nil, err
	}
	return suite.Run(ctx, w, o, checks, l.print)
}
