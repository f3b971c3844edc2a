package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/stages"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// unfolded replaces "fast" (the checks of CI) and "behaviours" (all) with the checks of behaviours.
func unfolded(ids []string) (all []string) {
	for _, id := range ids {
		some := []suite.Check{{ID: id}}
		switch id {
		case outcome.Fast:
			some = suite.Fast(checks.Behaviours())
		case outcome.Behaviours:
			some = checks.Behaviours()
		}
		for _, c := range some {
			if !slices.Contains(all, c.ID) {
				all = append(all, c.ID)
			}
		}
	}
	return all
}

// judgeCommand is called by `make check` and `make exercises-verify`.
func judgeCommand() *cobra.Command {
	fixtures, records := 1, ""
	cmd := &cobra.Command{
		Use:   "judge",
		Short: "Run checks on programs: jobs come as JSON, verdicts go as JSON lines; exercises call it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := empty()
			if err != nil {
				return err
			}
			defer l.close()
			l.kept = fixtures == 1
			if records != "" && fixtures != 1 {
				return errors.New("--ledger: several control planes have several ledgers; leave out --fixtures")
			}
			return l.judge(cmd.Context(), fixtures, records, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&fixtures, "fixtures", fixtures,
		"how many control planes; a single one is the kept one, if there is one")
	cmd.Flags().StringVar(&records, "ledger", "", "the file that gets each event and each request of the programs")
	return cmd
}

// judge runs the jobs, one after the other in each fixture. It starts the fixtures while the caller prepares the jobs;
// without a job, it ends.
func (l *lab) judge(ctx context.Context, fixtures int, records string, in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	say := func(s outcome.Judged) {
		mu.Lock()
		defer mu.Unlock()
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
	}
	next, wrong := make(chan outcome.Job), error(nil)
	go func() {
		defer close(next)
		var jobs []outcome.Job
		if err := json.NewDecoder(in).Decode(&jobs); err != nil && !errors.Is(err, io.EOF) {
			wrong = fmt.Errorf("read the jobs: %w", err)
		}
		for _, j := range jobs {
			select {
			case next <- j:
			case <-ctx.Done():
			}
		}
	}()
	err := l.inFixtures(ctx, fixtures, func(w *fixture.Fixture) error {
		stop, err := copied(w, records)
		if err != nil {
			return err
		}
		for j := range next {
			if err := l.one(ctx, w, j, say); ctx.Err() != nil {
				return errors.Join(ctx.Err(), stop())
			} else if err != nil {
				say(outcome.Judged{Job: j.Name, Error: err.Error()})
			}
		}
		return stop()
	})
	if err != nil {
		return err // perhaps before the jobs were read
	}
	return wrong
}

// inFixtures calls do with each of some fixtures, at the same time.
func (l *lab) inFixtures(ctx context.Context, fixtures int, do func(*fixture.Fixture) error) error {
	errs := make([]error, fixtures)
	var running sync.WaitGroup
	for n := range fixtures {
		running.Go(func() {
			w, err := l.fixture(ctx, implementation{})
			if err != nil {
				errs[n] = err
				return
			}
			defer l.end(w)
			errs[n] = do(w)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// copied writes the records of a fixture's ledger to a file until stop is called; an empty path means no file.
func copied(w *fixture.Fixture, path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := loop.Create(path, math.MaxInt)
	if err != nil {
		return nil, err
	}
	w.Ledger.Copy(file.Write)
	return file.Close, nil
}

// one runs the checks of a job.
func (l *lab) one(ctx context.Context, w *fixture.Fixture, j outcome.Job, say func(outcome.Judged)) error {
	if j.Specification != "" {
		spec, err := specification.Read(j.Specification)
		if err != nil {
			return err
		}
		return examine.Judge(ctx, w, examine.Subject{Program: j.Program, CRD: j.CRD}, spec,
			func(r outcome.Result) { say(outcome.Judged{Job: j.Name, Result: r}) })
	}
	i, err := l.program(ctx, j)
	if err != nil {
		return err
	}
	return impl.WithCRD(ctx, w, j.CRD, func() error { return judged(ctx, w, i, j, say) })
}

// judged runs the checks of a job on its program.
func judged(ctx context.Context, w *fixture.Fixture, i implementation, j outcome.Job, say func(outcome.Judged)) error {
	o, err := suite.NewOperator(ctx, w, i, "lab-"+j.Name)
	if err != nil {
		return err
	}
	defer o.Kill()
	isNoStage := func(id string) bool { return !strings.HasPrefix(id, "stage/") }
	if j.Objects {
		o.AssumeNone()
	} else if j.Of != "" || !slices.ContainsFunc(j.Checks, isNoStage) {
		o.AssumeAll() // a bug may be a missing status; a first stage has none
	}
	report := func(o outcome.Result) { say(outcome.Judged{Job: j.Name, Result: o}) }
	first := unfolded(j.Checks)
	then := slices.DeleteFunc(unfolded(j.Then), func(id string) bool { return slices.Contains(first, id) })
	passed, err := passes(ctx, w, o, first, report)
	if err == nil && passed && len(then) > 0 {
		_, err = passes(ctx, w, o, then, report)
	}
	return err
}

// passes runs checks on an operator, and reports whether all of them pass.
func passes(ctx context.Context, w *fixture.Fixture, o *suite.Operator, ids []string, report func(outcome.Result)) (bool,
	error) {
	checks, outcomes, err := crash.Choose(ctx, w, o, append(stages.Checks(), checks.All()...), ids)
	if err != nil {
		return false, err
	}
	for _, o := range outcomes {
		report(o)
	}
	if !o.Running() {
		err = o.Start(ctx)
	}
	if err != nil && ctx.Err() == nil { // a program that does not start can pass no check
		for _, c := range checks {
			report(outcome.Result{ID: c.ID, Title: c.Title, Verdict: outcome.Failed, What: err.Error()})
		}
		return false, nil
	}
	more, err := suite.Run(ctx, w, o, checks, report)
	failed := func(o outcome.Result) bool { return !o.Passed() }
	return !slices.ContainsFunc(slices.Concat(outcomes, more), failed), err
}

// program returns the program of a job as an implementation.
func (l *lab) program(ctx context.Context, j outcome.Job) (i implementation, err error) {
	if j.Of != "" {
		chosen, err := impl.Choose(l.root, j.Of)
		if err != nil {
			return i, err
		}
		i = chosen[0]
	}
	i.Name, i.Title, i.Path, i.Package, i.Folder = j.Name, "the reader's", j.Program, "", cmp.Or(j.Folder, i.Folder)
	i.Program, i.Admission, i.Fails = "", nil, nil // the kept cluster has only the plugins of the reader's own cluster
	if j.Rights == "all" {
		i.Roles, i.LeaseRoles = nil, nil
	}
	return i.Build(ctx, l.dir)
}
