package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/report"
)

// waysCommand prints the table that a page shows. The page's block is compared with it, like every other output.
func waysCommand() *cobra.Command {
	var page string
	cmd := &cobra.Command{Use: "ways FILE", Short: "Print the table of ways.json, which compare writes",
		Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&page, "page", "", "a page that shows this table: write it there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := report.ReadWays(args[0])
		if err != nil {
			return err
		}
		if page == "" {
			return w.Print(cmd.OutOrStdout())
		}
		var table bytes.Buffer
		if err := w.Print(&table); err != nil {
			return err
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if text, err = withTable(text, table.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		return os.WriteFile(page, text, 0o644)
	}
	return cmd
}

// shown matches the block of a command that prints the table, and the block of its output.
var shown = regexp.MustCompile("(?m)(^```sh.*\n.*lab ways .*\n```\nOutput:\n```console\n)(?:[^`].*\n|\n)*(```\n)")

// withTable replaces the table in a page.
func withTable(page, table []byte) ([]byte, error) {
	if !shown.Match(page) {
		return nil, fmt.Errorf("it has no block of `lab ways` with a console block after it")
	}
	return shown.ReplaceAllFunc(page, func(found []byte) []byte {
		parts := shown.FindSubmatch(found)
		return bytes.Join([][]byte{parts[1], table, parts[2]}, nil)
	}), nil
}
