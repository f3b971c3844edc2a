package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine"
)

// compareCommand compares two reports of earlier examinations. It examines nothing.
func compareCommand() *cobra.Command {
	return &cobra.Command{Use: "compare OLD NEW", Args: cobra.ExactArgs(2),
		Short: "Compare two reports: the findings that became better and worse",
		RunE: func(cmd *cobra.Command, files []string) error {
			older, err := examine.ReadReport(files[0])
			if err != nil {
				return err
			}
			newer, err := examine.ReadReport(files[1])
			if err != nil {
				return err
			}
			page, verdict := compared(older, newer)
			fmt.Fprint(cmd.OutOrStdout(), page)
			return verdict
		}}
}

// compared is the page with the findings that became better and worse. Worse findings are an error.
func compared(older, newer *examine.Report) (page string, err error) {
	page, worse := examine.Compare(older, newer)
	if len(worse) > 0 {
		err = fmt.Errorf("%d findings passed before and fail now: %s", len(worse), strings.Join(worse, ", "))
	}
	return page, err
}

// explainCommand prints findings of a report with all that is known about them.
func explainCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "explain FINDING", Args: cobra.ExactArgs(1),
		Short: "Explain a finding by its id, or the findings of an experiment",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				s, err := withFile(examine.Subject{}, "")
				if err != nil {
					return err
				}
				file = filepath.Join(s.Out, "examine.json")
			}
			report, err := examine.ReadReport(file)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: `examine run` writes it, and --report names the examine.json in another folder OUT=", err)
			} else if err != nil {
				return err
			}
			if !report.Explain(cmd.OutOrStdout(), args[0]) {
				return fmt.Errorf("%s has no finding %s: its ids begin with the name of an experiment, %s", file, args[0],
					strings.Join(examine.IDs(), ", "))
			}
			return nil
		}}
	cmd.Flags().StringVar(&file, "report", "",
		"the report (default: examine.json in the folder out: of examine.yaml, or in "+defaultOut+")")
	return cmd
}
