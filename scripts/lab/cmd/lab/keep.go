package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// keptIn is the folder of the cluster that `bin/lab up` keeps, beside the folder of the reader's own cluster.
func keptIn(root string) string {
	return filepath.Join(cmp.Or(os.Getenv("WORKSHOP_STATE"), filepath.Join(root, ".workshop")), "lab")
}

func upCommand() *cobra.Command {
	return keepCommand("up", "Keep a control plane between runs: conformance, crash and faults use it and start faster",
		func(ctx context.Context, root string) error {
			o := fixture.Options{Bin: filepath.Join(root, "bin"), Kept: keptIn(root), CRDs: []string{filepath.Join(root, impl.CRD)}}
			if err := fixture.Up(ctx, o); err != nil {
				return fmt.Errorf("start the lab's control plane: %w", err)
			}
			fmt.Println("the lab's control plane runs; `bin/lab down` removes it")
			return nil
		})
}

func downCommand() *cobra.Command {
	return keepCommand("down", "Remove the control plane that `up` keeps", func(ctx context.Context, root string) error {
		if err := cluster.DownKept(ctx, filepath.Join(root, "bin"), keptIn(root)); err != nil {
			return fmt.Errorf("remove the lab's control plane: %w", err)
		}
		_ = os.Remove(filepath.Dir(keptIn(root))) // fails when the reader's own cluster is there
		fmt.Println("no control plane of the lab is kept")
		return nil
	})
}

func keepCommand(use, short string, run func(ctx context.Context, root string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		root, err := impl.Here()
		if err != nil {
			return err
		}
		return run(cmd.Context(), root)
	}}
}

// fixture starts a fixture for an implementation. It uses the kept cluster if there is one, unless another run uses
// it, or the implementation would leave objects behind.
func (l *lab) fixture(ctx context.Context, i implementation) (*fixture.Fixture, error) {
	o := fixture.Options{Bin: filepath.Join(l.root, "bin"), CRDs: i.CRDs(l.root), APIServer: slices.Clone(i.APIServer)}
	for _, plugin := range i.Admission {
		o.APIServer = append(o.APIServer, "--enable-admission-plugins="+plugin) // one more besides the usual
	}
	if l.kept && fixture.IsKept(keptIn(l.root)) && !i.AnotherCRD() && len(i.Needs)+len(i.Admission)+len(i.APIServer) == 0 {
		o.Kept = keptIn(l.root)
		if w, err := fixture.Start(ctx, o); !errors.Is(err, cluster.ErrBusy) {
			return w, err
		}
		o.Kept = ""
	}
	return fixture.Start(ctx, o)
}
