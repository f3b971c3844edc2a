package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/chapter"
)

func newChapterCommand() *cobra.Command {
	return newCommand("new-chapter NAME", "Begin a chapter", cobra.ExactArgs(1),
		func(cmd *cobra.Command, w workshop, args []string) error {
			if err := w.newChapter(cmd.Context(), os.Stdout, args[0]); err != nil {
				return err
			}
			fmt.Printf(newChapterEnd, args[0])
			return nil
		})
}

// newChapter makes a chapter and its entries in other files.
func (w workshop) newChapter(ctx context.Context, out io.Writer, name string) error {
	return chapter.New(w.root, name, func() error {
		if _, err := chapter.Sync(w.root); err != nil {
			return err
		}
		if err := w.run(ctx, out, name, "go", "mod", "tidy"); err != nil {
			return fmt.Errorf("go mod tidy: %w; nothing of %s is left, try again", err, name)
		}
		return w.recordBlocks()
	})
}

const newChapterEnd = `
%[1]s is there, with a page, a test and kind.sh. It is in README.md, scripts/sync.yaml and scripts/blocks.yaml.
To be found by tests, verify, CI and kind it needs nothing more:

  make test CH=%[1]s && make verify CH=%[1]s

"A new chapter" in CONTRIBUTING.md lists your next steps.
`
