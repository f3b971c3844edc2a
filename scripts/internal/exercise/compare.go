package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// ErrNoRun means that there are no two runs of one check to compare.
var ErrNoRun = errors.New("there is no run to compare")

// solutionRun returns the folder with the loop of the solution, in the check whose loop was kept last.
func (c Course) solutionRun(e Exercise) loop.Kept {
	return loop.KeptOf(filepath.Join(c.Checks, "solutions"), e.ID)
}

// RecordSolution runs the solution of an exercise in the check whose loop was kept last, and keeps the solution's loop.
func (c Course) RecordSolution(ctx context.Context, e Exercise) error {
	j, err := c.Kept(e).Verdict()
	if errors.Is(err, os.ErrNotExist) || e.Solution == "" {
		return fmt.Errorf("%w: `make check EX=%s` keeps that of an operator", ErrNoRun, e.ID)
	} else if err != nil {
		return err
	}
	files, err := c.Files(e, e.Solution)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "solution-")
	if err != nil {
		return ways(err)
	}
	defer os.RemoveAll(work)
	own, earlier := checksOf(c.All, e)
	job := newJob("solution", "", []string{j.Check}, needNoStatus(slices.Concat(own, earlier)))
	c.Work, c.Checks = work, filepath.Dir(string(c.solutionRun(e)))
	if _, err = c.Put(e, files); err != nil {
		return err
	}
	var r Judgement
	if err := errors.Join(c.Module(e), c.operate(ctx, e, ".", job, job.Checks, &r)); err != nil {
		return err
	}
	if !r.Passed() {
		return fmt.Errorf("the solution of %s fails %s here: %s", e.ID, j.Check, r.Failure())
	}
	return nil
}

// Compare compares the loop of the reader's last check with that of the solution in the same check. The error is ErrNoRun
// until RecordSolution has kept the solution's loop.
func (c Course) Compare(ctx context.Context, e Exercise) (compared loop.Comparison, mine, solution loop.KeptVerdict, err error) {
	run, mine, err := c.Kept(e).Read(ctx)
	other, solution, missing := c.solutionRun(e).Read(ctx)
	if err = errors.Join(err, missing); errors.Is(err, os.ErrNotExist) || err == nil && mine.Check != solution.Check {
		err = ErrNoRun
	}
	return loop.Compare(run, other, mine.At), mine, solution, err
}

// PrintComparison writes two runs, one below the other, and marks where they differ first.
func PrintComparison(w io.Writer, c loop.Comparison, mine, solution loop.KeptVerdict) error {
	extra, missing := "the first difference: The solution's run lacks this.", "the first difference: Your run lacks this."
	if mine.Passed {
		extra, missing = "Only your run has this.", "Only the solution's run has this."
	}
	err := printRun(w, "Your run of "+mine.Check, c.Run, mine.Namespace, c.Extra, extra)
	fmt.Fprintln(w)
	err = errors.Join(err, printRun(w, "The solution's run of "+solution.Check, c.Other, solution.Namespace, c.Missing, missing))
	switch {
	case c.Extra+c.Missing == 0:
		outcome.Wrap(w, "", "After each act of the user, both programs made the same changes.")
	case mine.Passed:
		outcome.Wrap(w, "", "Both programs passed the check: this difference is not a mistake.")
	}
	return err
}

func printRun(w io.Writer, title string, records []loop.Record, namespace string, marked int, text string) error {
	fmt.Fprintln(w, title+":")
	p := loop.Printer{W: w, Namespace: namespace}
	var err error
	for _, r := range records {
		if err = errors.Join(err, p.Print(r)); r.N == marked {
			err = errors.Join(err, p.Close())
			if owners := r.OwnersOfNew(); owners != nil {
				text += " (" + strings.Join(owners, ", ") + ")"
			}
			outcome.Wrap(w, ">>> ", text)
		}
	}
	return errors.Join(err, p.Close())
}
