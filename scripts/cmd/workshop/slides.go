package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/teaching"
)

// present is the tool that shows slides.
const present = "present"

func slidesCommand() *cobra.Command {
	var check bool
	var port string
	cmd := newCommand("slides", "Show the slides in a browser", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if check {
				return w.checkSlides(cmd.Context(), os.Stdout)
			}
			if err := w.tools(cmd, []string{present}); err != nil {
				return err
			}
			fmt.Printf("http://127.0.0.1:%s/%s (N: your notes; Ctrl-C ends)\n", port, teaching.Slides)
			return teaching.ServeSlides(cmd.Context(), filepath.Join(w.bin(), present), w.root, port, os.Stderr)
		})
	cmd.Flags().BoolVar(&check, "check", false, "render all slides, and end")
	cmd.Flags().StringVar(&port, "port", "3999", "the port on 127.0.0.1")
	return cmd
}

// checkSlides renders all slides.
func (w workshop) checkSlides(ctx context.Context, out io.Writer) error {
	if err := w.builder().Ensure(ctx, present); err != nil {
		return err
	}
	slides, err := teaching.CheckSlides(ctx, filepath.Join(w.bin(), present), w.root)
	if err == nil {
		fmt.Fprintf(out, "%d slides, each can be shown\n", slides)
	}
	return err
}
