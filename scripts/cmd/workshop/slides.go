package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/teaching"
)

func slidesCommand() *cobra.Command {
	var check bool
	var port string
	cmd := &cobra.Command{Use: "slides", Short: "Show the slides in a browser", Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, w workshop, _ []string) error {
			if err := w.tools(cmd, []string{"present"}); err != nil {
				return err
			}
			program := filepath.Join(w.bin(), "present")
			if !check {
				fmt.Printf("http://127.0.0.1:%s/%s (N: your notes; Ctrl-C ends)\n", port, teaching.Slides)
				return teaching.ServeSlides(cmd.Context(), program, w.root, port, os.Stderr)
			}
			slides, err := teaching.CheckSlides(cmd.Context(), program, w.root)
			if err == nil {
				fmt.Printf("%d slides, each can be shown\n", slides)
			}
			return err
		})}
	cmd.Flags().BoolVar(&check, "check", false, "render all slides, and end")
	cmd.Flags().StringVar(&port, "port", "3999", "the port on 127.0.0.1")
	return cmd
}
