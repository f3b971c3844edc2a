package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/benchmark"
)

func benchmarkCommand() *cobra.Command {
	var impls, parts string
	o := benchmark.Options{Report: progress}
	cmd := &cobra.Command{Use: "benchmark", Short: "Measure requests, memory, and sizes", Args: cobra.NoArgs}
	implFlag(cmd, &impls)
	cmd.Flags().StringVar(&parts, "parts", "", "only these parts: "+strings.Join(benchmark.Parts, ", "))
	cmd.Flags().IntSliceVar(&o.Memory, "memory", benchmark.Sizes, "numbers of MyWebs at which memory is measured")
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
