package main

import (
	"context"
	"fmt"
	"os"

	"example.com/operator-workshop/scripts/internal/exercise"
)

// capstone scores the program in work/capstone by behaviours.
func (w workshop) capstone(ctx context.Context, c exercise.Course, verbose bool) error {
	if err := w.lab(ctx); err != nil {
		return err
	}
	score, err := c.Score(ctx, exercise.Capstone)
	if err != nil {
		return err
	}
	if shown := score.Print(os.Stdout, verbose); shown < len(score) {
		return fmt.Errorf("%w: %d of %d behaviours", errNotPassed, shown, len(score))
	}
	return nil
}
