package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/benchmark"
)

func benchmarkCommand() *cobra.Command {
	var impls, parts string
	o := benchmark.Usual()
	o.Report = progress
	cmd := &cobra.Command{Use: "benchmark", Short: "Measure: counts first, then ratios inside this run",
		Args: cobra.NoArgs}
	implFlag(cmd, &impls)
	cmd.Flags().StringVar(&parts, "parts", "", "only these parts: "+strings.Join(benchmark.Parts, ", "))
	cmd.Flags().IntSliceVar(&o.Memory, "memory", o.Memory, "numbers of MyWebs at which memory is measured")
	cmd.Flags().IntVar(&o.Objects, "objects", o.Objects, "how many MyWebs converge at once")
	cmd.Flags().IntVar(&o.Pairs, "pairs", o.Pairs, "pairs of runs for a ratio")
	cmd.Flags().Float64Var(&o.Rate, "rate", o.Rate, "new MyWebs per second, for the latency")
	cmd.Flags().IntVar(&o.Samples, "samples", o.Samples, "how many MyWebs arrive")
	cmd.Flags().StringVar(&o.Profile, "profile", "",
		"a folder for processor profiles of the operators while MyWebs converge, for go tool pprof")
	cmd.RunE = opened(&impls, func(ctx context.Context, l *lab) error {
		o.Root, o.Implementations, o.Parts = l.root, l.impls, words(parts)
		r, err := benchmark.Run(ctx, o)
		if err != nil {
			return err
		}
		r.Print(cmd.OutOrStdout())
		return nil
	})
	return cmd
}
