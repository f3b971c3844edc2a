package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/tools"
)

// exercisesVerifyCommand checks that all exercises obey the rules of exercise.Verify, in a separate folder and on
// separate control planes.
func exercisesVerifyCommand() *cobra.Command {
	var ch string
	var fast bool
	cmd := newCommand("exercises-verify",
		"Prove every exercise: starter, solution, wrong answers, hints, jumps", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			c, err := w.course()
			if err != nil {
				return err
			}
			some := slices.DeleteFunc(slices.Clone(c.All), func(e exercise.Exercise) bool {
				starts := func(begin string) bool { return strings.HasPrefix(e.ID, begin) }
				return !slices.ContainsFunc(strings.Split(ch, ","), starts)
			})
			if fast {
				some = exercise.Selected(some)
			}
			if len(some) == 0 {
				return fmt.Errorf("CH=%s: no exercise begins so", ch)
			}
			return w.verifyExercises(cmd.Context(), c, some)
		})
	cmd.Flags().StringVar(&ch, "ch", "", "only exercises that begin so: 04, or 04.3,04.4")
	cmd.Flags().BoolVar(&fast, "fast", false, "a selection, for CI")
	return cmd
}

func (w workshop) verifyExercises(ctx context.Context, c exercise.Course, some []exercise.Exercise) error {
	if err := w.builder().Ensure(ctx, tools.Generators...); err != nil {
		return err
	}
	c, end, err := w.proof(ctx, c)
	if err != nil {
		return err
	}
	defer end()
	c.Judge.Waiting = nil
	begin := time.Now()
	n, err := c.Verify(ctx, some, printStep)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("%v (%.0f s)\n", n, time.Since(begin).Seconds())
	return err
}

// proof returns the course in a separate folder, judged on separate control planes, until end is called.
func (w workshop) proof(ctx context.Context, c exercise.Course) (_ exercise.Course, end func(), err error) {
	if err := w.lab(ctx); err != nil {
		return c, nil, err
	}
	if err := os.MkdirAll(w.state, 0o700); err != nil {
		return c, nil, err
	}
	dir, err := os.MkdirTemp(w.state, "exercises-")
	if err != nil {
		return c, nil, err
	}
	plane := cluster.New(w.bin(), filepath.Join(dir, "plane"), func(string, ...any) {})
	c.Work, c.Checks = filepath.Join(dir, "work"), ""
	c.Judge.Fixtures = 2
	c.Plane = func(ctx context.Context) (string, error) { return plane.Kubeconfig(), plane.Up(ctx) }
	return c, func() {
		_ = plane.Down(context.WithoutCancel(ctx))
		_ = os.RemoveAll(dir)
	}, nil
}

func printStep(format string, args ...any) { fmt.Printf("  "+format+"\n", args...) }
