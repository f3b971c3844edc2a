package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
)

// controlCommand compares an implementation with itself. A difference between two programs means something only when
// this comparison finds no difference. The times have their own control in each comparison.
func controlCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{Use: "control", Args: cobra.NoArgs,
		Short: "Compare an implementation with itself, in verdicts and counts: each difference is an error"}
	cmd.Flags().StringVar(&name, "impl", "03", "the implementation")
	cmd.RunE = opened(&name, func(ctx context.Context, l *lab) error {
		if len(l.impls) != 1 {
			return errors.New("a control is of one implementation")
		}
		itself := l.impls[0]
		itself.Name += "-again"
		l.impls = append(l.impls, itself)
		outcomes, err := l.examine(ctx, &examination{fast: true, rounds: 1},
			[]part{{checks.All(), true}},
			func(implementation, outcome.Result) {})
		if err != nil {
			return err
		}
		counts, err := l.count(ctx)
		if err != nil {
			return err
		}
		a, b := l.impls[0].Name, itself.Name
		err = errors.Join(differences("%s: %v, and then %v", verdicts(outcomes[a]), verdicts(outcomes[b])),
			differences("%s: %v requests, and then %v", flat(counts[a]), flat(counts[b])))
		if err != nil {
			return fmt.Errorf("%s differs from itself, so that a difference to another means nothing:\n%w", a, err)
		}
		fmt.Printf("-- %s and %s: no difference in %d checks and %d phases\n", a, b, len(outcomes[a]), len(counts[a]))
		return nil
	})
	return cmd
}

// verdicts are the verdicts by the names of the checks.
func verdicts(outcomes []outcome.Result) map[string]outcome.Verdict {
	all := map[string]outcome.Verdict{}
	for _, o := range outcomes {
		all[o.Check] = o.Verdict
	}
	return all
}

// differences returns an error that names each key with two different values.
func differences[V comparable](format string, a, b map[string]V) (err error) {
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		if a[key] != b[key] {
			err = errors.Join(err, fmt.Errorf(format, key, a[key], b[key]))
		}
	}
	return err
}
