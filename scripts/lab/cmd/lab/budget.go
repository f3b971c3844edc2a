package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/lab/benchmark"
)

// A budget is how many requests of each kind an implementation may send in each phase, by name, phase and kind.
type budget map[string]map[string]map[string]int

const budgetHead = `# The requests of each implementation to the API server, without leases and events, for the number of MyWebs in the
# name of the phase. Counts may never rise: ` + "`make verify`" + ` compares. Written by ` + "`scripts/workshop lab budget --write`" + `.
`

func budgetCommand() *cobra.Command {
	var put bool
	cmd := &cobra.Command{Use: "budget", Short: "Count the requests, and compare with scripts/lab/myweb/budget.yaml",
		Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&put, "write", false, "write the file anew")
	cmd.RunE = opened(new(string), func(ctx context.Context, l *lab) error {
		file := filepath.Join(l.root, "scripts", "lab", "myweb", "budget.yaml")
		if put {
			return l.writeBudget(ctx, file)
		}
		err := l.checkBudget(ctx, file)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// An operator that sends more requests than before does so every time; a busy machine causes extra requests
		// only once.
		fmt.Printf("%v\ncounting again\n", err)
		return l.checkBudget(ctx, file)
	})
	return cmd
}

func (l *lab) writeBudget(ctx context.Context, file string) error {
	have, err := l.count(ctx)
	if err != nil {
		return err
	}
	data, err := yaml.Marshal(have)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(budgetHead), data...), 0o644)
}

func (l *lab) checkBudget(ctx context.Context, file string) error {
	var may budget
	if err := strictyaml.Read(file, &may); err != nil {
		return err
	}
	have, err := l.count(ctx)
	if err != nil {
		return err
	}
	return have.within(may)
}

// count measures the current numbers.
func (l *lab) count(ctx context.Context) (budget, error) {
	r, err := benchmark.Run(ctx, benchmark.Options{Root: l.root, Implementations: l.impls,
		Parts: []string{benchmark.Counts}})
	if err != nil {
		return nil, err
	}
	have := budget{}
	for _, m := range r.Implementations {
		have[m.Name] = map[string]map[string]int{}
		for _, c := range m.Counts {
			have[m.Name][fmt.Sprintf("%s of %d", c.Phase, c.Objects)] = c.Requests
		}
		if len(have[m.Name]) == 0 {
			return nil, fmt.Errorf("%s could not be counted: %s", m.Name, strings.Join(r.Notes, "; "))
		}
	}
	return have, nil
}

// within returns an error that names each count that rose. It prints counts that fell, so that they can be entered.
func (b budget) within(may budget) (err error) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		have, allowed := flat(b[name]), flat(may[name])
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if n, most := have[key], allowed[key]; n > most {
				err = errors.Join(err, fmt.Errorf("%s, %s: %d times, %d are in the budget", name, key, n, most))
			}
		}
		for key, most := range allowed {
			if n := have[key]; n < most {
				fmt.Printf("  %s, %s: it fell from %d to %d: `scripts/workshop lab budget --write` keeps it there\n",
					name, key, most, n)
			}
		}
	}
	return err
}

// flat has the counts of all phases, by "phase, kind".
func flat(phases map[string]map[string]int) map[string]int {
	all := map[string]int{}
	for phase, kinds := range phases {
		for kind, n := range kinds {
			all[phase+", "+kind] = n
		}
	}
	return all
}
