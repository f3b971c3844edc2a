package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
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
			[]part{{the(checks.All), crash.Checks}},
			func(implementation, outcome.Result) {})
		if err != nil {
			return err
		}
		counts, err := l.count(ctx)
		if err != nil {
			return err
		}
		a, b := l.impls[0].Name, itself.Name
		err = errors.Join(sameVerdicts(outcomes[a], outcomes[b]), sameCounts(counts[a], counts[b]))
		if err != nil {
			return fmt.Errorf("%s differs from itself, so that a difference to another means nothing:\n%w", a, err)
		}
		fmt.Printf("-- %s and %s: no difference in %d checks and %d phases\n", a, b, len(outcomes[a]), len(counts[a]))
		return nil
	})
	return cmd
}

// sameVerdicts returns an error that names each check with two different verdicts.
func sameVerdicts(a, b []outcome.Result) (err error) {
	verdicts := func(outcomes []outcome.Result) map[string]string {
		all := map[string]string{}
		for _, o := range outcomes {
			all[o.Check] = fmt.Sprint(o.Verdict)
		}
		return all
	}
	return differences("%s: %v, and then %v", verdicts(a), verdicts(b))
}

// sameCounts returns an error that names each phase with different requests.
func sameCounts(a, b map[string]map[string]int) (err error) {
	for _, phase := range slices.Sorted(maps.Keys(a)) {
		err = errors.Join(err, differences(phase+", %s: %v requests, and then %v", a[phase], b[phase]))
	}
	return err
}

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
