package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/chapter"
)

const govulncheck = "govulncheck"

// vulnerabilitiesCommand is for the workflow: its findings depend on the day, so `make verify` leaves it out.
func vulnerabilitiesCommand() *cobra.Command {
	return newCommand("vulnerabilities", "Search the Go modules for known vulnerabilities that their code calls",
		cobra.NoArgs, func(cmd *cobra.Command, w workshop, _ []string) error {
			err := w.builder().Program(cmd.Context(), filepath.Join(w.root, textModule),
				"golang.org/x/vuln/cmd/govulncheck", govulncheck)
			if err != nil {
				return err
			}
			modules, err := chapter.Modules(w.root)
			if err != nil {
				return err
			}
			for _, module := range modules {
				if !hasCode(filepath.Join(w.root, module)) {
					continue
				}
				fmt.Println(module)
				failed := w.run(cmd.Context(), os.Stdout, module, filepath.Join(w.bin(), govulncheck), "-test", "./...")
				if failed != nil {
					err = errors.Join(err, fmt.Errorf("%s: %w", module, failed))
				}
			}
			return err
		})
}
