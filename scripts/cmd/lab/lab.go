package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/operator-workshop/scripts/internal/lab/impl"
	"example.com/operator-workshop/scripts/internal/lab/suite"
	"example.com/operator-workshop/scripts/internal/lab/world"
)

type implementation = impl.Implementation

// A lab is the checkout, and the programs under examination, built into a folder that goes with the lab.
type lab struct {
	root, dir string
	impls     []implementation
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

// empty is a lab without implementations.
func empty() (*lab, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	l := &lab{}
	if l.root, err = world.Root(dir); err != nil {
		return nil, err
	}
	l.dir, err = os.MkdirTemp("", "lab-")
	return l, err
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }

// world starts one with the CRD installed.
func (l *lab) world(ctx context.Context) (*world.World, error) {
	return world.Start(ctx, world.Options{Root: l.root, CRDs: []string{filepath.Join(l.root, impl.CRD)}})
}

func (l *lab) end(w *world.World) {
	if err := w.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "warning: the lab's cluster:", err)
	}
}

// prepare starts a world, with the implementation as an operator in it that does not run yet.
func (l *lab) prepare(ctx context.Context, i implementation) (*world.World, *suite.Operator, error) {
	w, err := l.world(ctx)
	if err != nil {
		return nil, nil, err
	}
	o, err := suite.NewOperator(ctx, w, i, "lab-"+i.Name)
	if err != nil {
		l.end(w)
		return nil, nil, err
	}
	return w, o, nil
}

// tell prints an outcome.
func (l *lab) tell(o suite.Outcome) { o.Print(os.Stdout) }
