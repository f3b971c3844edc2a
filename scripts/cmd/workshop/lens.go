package main

import (
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/cluster"
)

// freezeCommand makes the lens withhold the events of all watches and deliver them later.
func freezeCommand() *cobra.Command {
	var end bool
	cmd := newCommand("freeze", "Withhold the events of all watches for a minute; requests pass", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			if err := w.cluster().Started(); err != nil {
				return err
			}
			signal, done := syscall.SIGUSR1, "No program gets an event for a minute; requests pass. `workshop freeze --end` ends it."
			if end {
				signal, done = syscall.SIGUSR2, "The events that were withheld are delivered."
			}
			if err := w.cluster().Signal(cluster.Lens, signal); err != nil {
				return fmt.Errorf("the local cluster runs without the lens, which `make up` starts: %w", err)
			}
			fmt.Println(done)
			return nil
		})
	cmd.Flags().BoolVar(&end, "end", false, "deliver the withheld events now")
	return cmd
}
