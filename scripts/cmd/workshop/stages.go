package main

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/exercise"
)

// stagesCommand proves the pairs of the exercises that lead to a stage. `make exercises-verify` proves them, too, with
// all that belongs to an exercise.
func stagesCommand() *cobra.Command {
	var ch, only string
	var fast, list bool
	cmd := newCommand("stages", "See that each stage of a chapter is demanded by a check of the lab", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			wanted, err := regexp.Compile(only)
			if err != nil {
				return fmt.Errorf("--run: %w", err)
			}
			dirs, err := chapter.Select(w.root, ch)
			if err != nil {
				return err
			}
			c, err := w.course()
			if err != nil {
				return err
			}
			dirs = slices.DeleteFunc(dirs, func(dir string) bool { return len(exercise.Stages(c.All, dir)) == 0 })
			if list {
				for _, dir := range dirs {
					exercise.PrintStages(cmd.OutOrStdout(), c.All, dir)
				}
				return nil
			}
			var some []exercise.Exercise
			for _, dir := range dirs {
				some = append(some, exercise.Stages(c.All, dir)...)
			}
			some = slices.DeleteFunc(some, func(e exercise.Exercise) bool { return !wanted.MatchString(e.Solution) })
			if len(some) == 0 {
				return fmt.Errorf("no stage of %q matches %q", dirs, wanted)
			}
			c, end, err := w.proof(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer end()
			if fast { // starting control planes takes longer than these few checks
				if _, err := w.keptPlane(cmd.Context()); err != nil {
					return err
				}
				c.Judge.Fixtures = 1
			}
			pairs, err := c.Prove(cmd.Context(), some, fast, printStep)
			if len(pairs) > 0 {
				exercise.PrintPairs(cmd.OutOrStdout(), pairs)
			}
			return err
		})
	cmd.Flags().StringVar(&ch, "ch", "", "only this chapter")
	cmd.Flags().StringVar(&only, "run", "", "only stages whose folder matches this regular expression")
	cmd.Flags().BoolVar(&fast, "fast", false, "only the check that each stage demands, on it and on the one before")
	cmd.Flags().BoolVar(&list, "list", false, "print what exercises.yaml says, without a run")
	return cmd
}
