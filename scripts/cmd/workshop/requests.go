package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/internal/exercise"
)

// A requestFilter chooses requests. It never chooses requests about leases or without an object.
type requestFilter struct {
	by     []string // programs or users; empty means all
	writes bool     // only those that ask for a change
	since  time.Time
}

func requestsCommand() *cobra.Command {
	var filter requestFilter
	cmd := newCommand("requests",
		"Print which program asked the local cluster's API server for what, leases left out", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			printRequest(os.Stdout, []string{"TIME", "BY", "VERB", "CODE", "RESOURCE", "OBJECT"})
			return w.eachRequest(cmd.Context(), filter, false, func(r loop.Record) { printRequest(os.Stdout, columns(r)) })
		})
	bindBy(cmd, &filter.by)
	cmd.Flags().BoolVar(&filter.writes, "writes", false, "only requests that ask for a change")
	return cmd
}

func writesCommand() *cobra.Command {
	var filter requestFilter
	var duration time.Duration
	cmd := newCommand("writes", "Count the writes of the next seconds, leases left out", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			filter.writes, filter.since = true, time.Now()
			ctx, cancel := context.WithTimeout(cmd.Context(), duration)
			defer cancel()
			count := 0
			err := w.eachRequest(ctx, filter, true, func(r loop.Record) {
				count++
				printRequest(os.Stdout, columns(r))
			})
			if err == nil && cmd.Context().Err() == nil {
				fmt.Printf("written in %s: %d\n", duration, count)
			}
			return err
		})
	bindBy(cmd, &filter.by)
	cmd.Flags().DurationVar(&duration, "for", 3*time.Second, "how long to count")
	return cmd
}

func watchCommand() *cobra.Command {
	var by []string
	var ex string
	var pause, solution bool
	cmd := newCommand("watch", "Print the loop as it happens: events that are delivered, and requests after them",
		cobra.NoArgs, func(cmd *cobra.Command, w workshop, _ []string) error {
			if solution {
				return w.compareRuns(cmd.Context(), ex)
			}
			if ex != "" {
				return w.replay(cmd.Context(), ex, pause)
			}
			filter, printer := requestFilter{by: by, since: time.Now()}, loop.Printer{W: os.Stdout}
			fmt.Println("Each event that is delivered to a program, and each request after it; Ctrl-C ends this.")
			err := w.eachRecord(cmd.Context(), filter, true, printer.Print)
			return errors.Join(err, printer.Close())
		})
	bindBy(cmd, &by)
	cmd.Flags().StringVar(&ex, "ex", "", "print again what the last check of this exercise saw: 04.3, capstone or bug")
	cmd.Flags().BoolVar(&pause, "pause", false, "with --ex, wait for Enter before each line")
	cmd.Flags().BoolVar(&solution, "solution", false,
		"with --ex, run the solution in the same check, and print both runs from the act on after which they differ")
	return cmd
}

// compareRuns runs the solution in the check of the reader's last run, and compares the two runs. It shows no code.
func (w workshop) compareRuns(ctx context.Context, id string) error {
	c, err := w.course()
	if err != nil {
		return err
	}
	t, err := w.meant(c, id)
	if err != nil {
		return err
	}
	if err := c.RecordSolution(ctx, t.Exercise); err != nil {
		return err
	}
	compared, mine, solution, err := c.Compare(ctx, t.Exercise)
	if err != nil {
		return err
	}
	return exercise.PrintComparison(os.Stdout, compared, mine, solution)
}

// replay prints the loop that was kept from the last check of an exercise.
func (w workshop) replay(ctx context.Context, id string, pause bool) error {
	c, err := w.course()
	if err != nil {
		return err
	}
	e := exercise.Bug{}.Exercise()
	if id != "bug" {
		if e, err = exercise.Find(c.All, id); err != nil {
			return err
		}
	}
	records, judgement, err := c.Kept(e).Read(ctx)
	if errors.Is(err, os.ErrNotExist) && e.Lab == nil && id != "bug" {
		return fmt.Errorf("the check of %s runs no operator, so there is no loop to show", id)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no check of %s has kept a loop: `make check EX=%s` keeps that of an operator", id, id)
	}
	if err != nil {
		return err
	}
	var next func() error
	if pause {
		wait := enter(os.Stdin, os.Stdout)
		next = func() error { return wait(ctx) }
	}
	return exercise.PrintKept(os.Stdout, records, judgement, next)
}

func bindBy(cmd *cobra.Command, by *[]string) {
	cmd.Flags().StringSliceVar(by, "by", nil, "only these programs (kubectl, myweb-operator, 4711) or users")
}

// eachRequest calls f for each chosen request that passed the lens. With follow it waits for more until ctx ends.
func (w workshop) eachRequest(ctx context.Context, filter requestFilter, follow bool, f func(loop.Record)) error {
	return w.eachRecord(ctx, filter, follow, func(r loop.Record) error {
		if filter.matches(r) {
			f(r)
		}
		return nil
	})
}

// eachRecord calls f for each record of the chosen programs.
func (w workshop) eachRecord(ctx context.Context, filter requestFilter, follow bool,
	f func(loop.Record) error) error {
	c := w.cluster()
	if err := c.Started(); err != nil {
		return err
	}
	if _, err := os.Stat(c.Ledger()); err != nil {
		return errors.New("this cluster runs without the lens, which records requests: `make up` starts it")
	}
	chosen := func(r loop.Record) error {
		if !r.IsBy(filter.by) || r.Time.Before(filter.since) {
			return nil
		}
		return f(r)
	}
	if !follow { // the backup, which has the older records
		err := loop.Read(ctx, loop.Backup(c.Ledger()), false, chosen)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	err := loop.Read(ctx, c.Ledger(), follow, chosen)
	if errors.Is(err, loop.ErrGone) {
		return errors.New("the local cluster was removed: there is nothing more to see")
	}
	return err
}

// matches reports whether a request is chosen: a watch when it begins, every other request when it is answered.
func (f requestFilter) matches(r loop.Record) bool {
	begun := r.Open == (r.Verb == "watch" && r.Code/100 == 2)
	return begun && r.Is == loop.Request && r.Resource != "" && r.Resource != "leases" &&
		(!f.writes || r.Changes())
}

func columns(r loop.Record) []string {
	return []string{r.Time.Local().Format(time.TimeOnly), r.By.Name, r.Verb, fmt.Sprint(r.Code), r.FullResource(), r.Which()}
}

// requestWidths are the widths of the columns: with a blank between them, 100 in all. Longer values are cut.
var requestWidths = []int{8, 23, 6, 4, 22, 32}

func printRequest(w io.Writer, columns []string) {
	var line strings.Builder
	for i, text := range columns {
		text = output.Line(text)
		if short := []rune(text); len(short) > requestWidths[i] {
			text = string(short[:requestWidths[i]-1]) + "…"
		}
		fmt.Fprintf(&line, "%-*s ", requestWidths[i], text)
	}
	fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
}
