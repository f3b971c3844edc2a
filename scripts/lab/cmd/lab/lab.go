package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

type implementation = impl.Implementation

// A lab is the checkout, and the examined programs, which are built into a folder that is removed with the lab.
type lab struct {
	root, dir string
	impls     []implementation
	// kept allows fixtures to use the cluster that `up` keeps.
	kept bool
}

// implFlag adds the flag that names the implementations.
func implFlag(cmd *cobra.Command, list *string) {
	cmd.Flags().StringVar(list, "impl", "",
		"implementations: names of scripts/lab/operators.yaml or name=path, separated by commas (default: all)")
}

// open finds the checkout, and builds the implementations that the list names.
func open(ctx context.Context, list string) (*lab, error) {
	l, err := empty()
	if err != nil {
		return nil, err
	}
	if l.impls, err = impl.Choose(l.root, words(list)...); err != nil {
		return nil, errors.Join(err, l.close())
	}
	for n, i := range l.impls {
		if l.impls[n], err = i.Build(ctx, l.dir); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// opened runs a command with the lab of these implementations; it reads the list after the flags are parsed.
func opened(list *string, do func(ctx context.Context, l *lab) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		l, err := open(cmd.Context(), *list)
		if err != nil {
			return err
		}
		defer l.close()
		return do(cmd.Context(), l)
	}
}

// empty returns a lab without implementations.
func empty() (*lab, error) {
	root, err := impl.Here()
	if err != nil {
		return nil, err
	}
	l := &lab{root: root}
	l.dir, err = os.MkdirTemp("", "lab-")
	return l, err
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }

func (l *lab) end(w *fixture.Fixture) {
	if err := w.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "warning: the lab's cluster:", err)
	}
}
