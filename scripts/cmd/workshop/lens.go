package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// lensCostCommand measures requests through the lens against requests past it.
func lensCostCommand() *cobra.Command {
	requests := 500
	cmd := newCommand("lens-cost", "Measure requests through the lens against requests past it, side by side", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			cost, err := w.cluster().LensCost(cmd.Context(), requests)
			if err != nil {
				return err
			}
			const ms = 1e6
			fmt.Printf("past the lens     %.2f ms a request (median of %d)\nthrough the lens  %.2f ms\nratio             %.2f\n",
				float64(cost.Direct)/ms, requests, float64(cost.Through)/ms, float64(cost.Through)/float64(cost.Direct))
			return nil
		})
	cmd.Flags().IntVar(&requests, "requests", requests, "how many on each way")
	return cmd
}
