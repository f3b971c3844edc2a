package main

import (
	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/tools"
)

func recordSumsCommand() *cobra.Command {
	return newCommand("record-sums",
		"Record the checksums of released programs, after their versions have changed", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			builder := w.builder()
			builder.Releases = tools.Published()
			return builder.RecordSums(cmd.Context())
		})
}
