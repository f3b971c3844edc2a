package main

import (
	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/report"
)

// waysCommand prints the table that a page shows. The page's block is compared with it, like every other output.
func waysCommand() *cobra.Command {
	return &cobra.Command{Use: "ways FILE", Short: "Print the table of ways.json, which compare writes",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			w, err := report.ReadWays(args[0])
			if err != nil {
				return err
			}
			return w.Print(cmd.OutOrStdout())
		}}
}
