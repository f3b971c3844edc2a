package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/loop"
	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/conformance"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/faults"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/stages"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A judgement is a job of an exercise: checks of all families on one program.
type judgement struct {
	// Name is the name of the job, and of the program's user.
	Name string `json:"name"`
	// Program is an executable file.
	Program string   `json:"program"`
	Checks  []string `json:"checks"`
	// Of is an operator of the list, whose roles, arguments and webhooks the program gets; Rights is "all" when the
	// program may do everything nevertheless. Without Of the program has none of these, and may do everything.
	Of     string `json:"of,omitempty"`
	Rights string `json:"rights,omitempty"`
	// Folder has the files of the roles and webhooks, in place of the operator's own files.
	Folder string `json:"folder,omitempty"`
	// Objects means that the objects of the program are judged, because the exercise does not yet ask for a status.
	Objects bool `json:"objects,omitempty"`
	// CRD is a file that replaces the installed CRD during the job.
	CRD string `json:"crd,omitempty"`
}

// A sentence is the printed result of a check, one line each. Error means that the lab failed; there is no verdict.
type sentence struct {
	Job string `json:"job"`
	suite.Outcome
	Error string `json:"error,omitempty"`
}

// unfolded replaces "fast" (the checks of CI) and "behaviours" (all) with the checks of behaviours.
func unfolded(ids []string) (all []string) {
	for _, id := range ids {
		some := []suite.Check{{ID: id}}
		switch id {
		case "fast":
			some = suite.Fast(conformance.Checks())
		case "behaviours":
			some = conformance.Checks()
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
			var jobs []judgement
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&jobs); err != nil {
				return fmt.Errorf("read the jobs: %w", err)
			}
			l, err := empty()
			if err != nil {
				return err
			}
			defer l.close()
			l.kept = fixtures == 1
			if records != "" && fixtures != 1 {
				return errors.New("--ledger: several control planes have several ledgers; leave out --fixtures")
			}
			return l.judge(cmd.Context(), fixtures, records, jobs, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&fixtures, "fixtures", fixtures,
		"how many control planes; a single one is the kept one, if there is one")
	cmd.Flags().StringVar(&records, "ledger", "", "the file that gets each event and each request of the programs")
	return cmd
}

// judge runs the jobs, one after the other in each fixture.
func (l *lab) judge(ctx context.Context, fixtures int, records string, jobs []judgement, out io.Writer) error {
	var mu sync.Mutex
	say := func(s sentence) {
		mu.Lock()
		defer mu.Unlock()
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
	}
	next := make(chan judgement, len(jobs))
	for _, j := range jobs {
		next <- j
	}
	close(next)
	errs := make([]error, fixtures)
	var running sync.WaitGroup
	for n := range fixtures {
		running.Go(func() {
			w, err := l.fixture(ctx, implementation{})
			if err != nil {
				errs[n] = err
				return
			}
			stop, err := copied(w, records)
			if err != nil {
				errs[n] = errors.Join(err, w.Stop())
				return
			}
			defer func() { errs[n] = errors.Join(errs[n], stop()) }()
			defer l.end(w)
			for j := range next {
				if err := l.one(ctx, w, j, say); ctx.Err() != nil {
					return
				} else if err != nil {
					say(sentence{Job: j.Name, Error: err.Error()})
				}
			}
		})
	}
	running.Wait()
	return errors.Join(append(errs, ctx.Err())...)
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
func (l *lab) one(ctx context.Context, w *fixture.Fixture, j judgement, say func(sentence)) (err error) {
	i, err := l.program(ctx, j)
	if err != nil {
		return err
	}
	if j.CRD != "" {
		defer func() {
			err = errors.Join(err, w.ReplaceCRD(context.WithoutCancel(ctx), filepath.Join(l.root, impl.CRD)))
		}()
		if err := w.ReplaceCRD(ctx, j.CRD); err != nil {
			return err
		}
	}
	o, err := suite.NewOperator(ctx, w, i, "lab-"+j.Name)
	if err != nil {
		return err
	}
	defer o.Kill()
	checks, outcomes, err := chosen(ctx, w, o, j)
	if err != nil {
		return err
	}
	report := func(o suite.Outcome) { say(sentence{Job: j.Name, Outcome: o}) }
	for _, o := range outcomes {
		report(o)
	}
	if err := o.Start(ctx); err != nil && ctx.Err() == nil { // a program that does not start can pass no check
		for _, c := range checks {
			report(suite.Outcome{Check: c.ID, Title: c.Title, Verdict: suite.Failed, Reason: err.Error()})
		}
		return nil
	}
	_, err = suite.Run(ctx, w, o, checks, report)
	return err
}

// program returns the program of a job as an implementation.
func (l *lab) program(ctx context.Context, j judgement) (i implementation, err error) {
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

// chosen are the checks that a job names.
func chosen(ctx context.Context, w *fixture.Fixture, o *suite.Operator, j judgement) (some []suite.Check,
	wrong []suite.Outcome, err error) {
	all := slices.Concat(stages.Checks(), conformance.Checks(), faults.Checks())
	has := func(prefix string) func(string) bool {
		return func(id string) bool { return strings.HasPrefix(id, prefix) }
	}
	if j.Objects {
		o.AssumeNone()
	} else if j.Of != "" || !slices.ContainsFunc(j.Checks, func(id string) bool { return !has("stage/")(id) }) {
		o.AssumeAll() // a bug may be a missing status; a first stage has none
	}
	if slices.ContainsFunc(j.Checks, has("crash/")) {
		var sequences []suite.Check
		if sequences, wrong, err = crash.Checks(ctx, w, o); err != nil {
			return nil, nil, err
		}
		all = append(all, sequences...)
	}
	j.Checks = unfolded(j.Checks)
	wrong = slices.DeleteFunc(wrong, func(o suite.Outcome) bool { return !slices.Contains(j.Checks, o.Check) })
	for _, id := range j.Checks {
		at := slices.IndexFunc(all, func(c suite.Check) bool { return c.ID == id })
		if at < 0 {
			if slices.ContainsFunc(wrong, func(o suite.Outcome) bool { return o.Check == id }) {
				continue
			}
			return nil, nil, fmt.Errorf("there is no check %s", id)
		}
		some = append(some, all[at])
	}
	return some, wrong, nil
}
