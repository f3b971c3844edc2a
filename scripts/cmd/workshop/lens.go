package main

import (
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/cluster"
)

// lensCostCommand compares the time of requests through the lens with the time of requests past it.
func lensCostCommand() *cobra.Command {
	const requests = 500
	return newCommand("lens-cost", "Measure requests through the lens against requests past it, side by side", cobra.NoArgs,
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
}

// freezeCommand makes the lens withhold the events of all watches and deliver them later.
func freezeCommand() *cobra.Command {
	var end bool
	cmd := newCommand("freeze", "Withhold the events of all watches for a minute; requests pass", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			if running, _ := w.cluster().Running(); running == 0 {
				return cluster.ErrNoCluster
			}
			signal, done := syscall.SIGUSR1, "No program gets an event for a minute; requests pass. `workshop freeze --end` ends it."
			if end {
				signal, done = syscall.SIGUSR2, "The events that were withheld are delivered."
			}
			if err := w.cluster().Signal(cluster.Lens, signal); err != nil {
				return fmt.Errorf("%w: %w", cluster.ErrNoLens, err)
			}
			fmt.Println(done)
			return nil
		})
	cmd.Flags().BoolVar(&end, "end", false, "deliver the withheld events now")
	return cmd
}
