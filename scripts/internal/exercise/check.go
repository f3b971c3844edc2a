package exercise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Judgement is the result of one examination of the reader's files.
type Judgement struct {
	Notes []string
	// Own are the verdicts of the exercise's own check, Earlier those of the exercises before it.
	Own, Earlier []Result
	// Compile is set when the program does not compile.
	Compile error `json:"-"`
	// Built is how long the compiler took, First the time from then to the card, Took the time to all verdicts.
	Built, First, Took time.Duration
	// Loop are lines of the program's loop in the check that passed. Kept means that `workshop watch` has the whole
	// loop.
	Loop []string `json:",omitempty"`
	Kept bool     `json:",omitempty"`
	// shown means that Course.Known has received the exercise's own verdicts.
	shown bool
}

// Passed reports whether all checks passed.
func (r Judgement) Passed() bool {
	failed := func(v Result) bool { return !v.Passed() }
	return r.Compile == nil && len(r.Own) > 0 && !slices.ContainsFunc(slices.Concat(r.Own, r.Earlier), failed)
}

// Failure returns all messages about failed checks, for patterns to match: those of the exercise's own check or, when it
// has passed, of those before it.
func (r Judgement) Failure() string {
	var text []string
	if r.Compile != nil {
		text = append(text, r.Compile.Error())
	}
	bad := failed(r.Own)
	if len(bad) == 0 {
		bad = failed(r.Earlier)
	}
	for _, v := range bad {
		text = append(text, v.ID+": "+string(v.Verdict), v.What, v.Reaction, strings.Join(v.Evidence, "\n"))
	}
	return strings.Join(text, "\n")
}

// A Course has the exercises, the folder of the reader's files, and the judge.
type Course struct {
	Workspace
	Judge Judge
	All   []Exercise
	// Plane starts a control plane, unless it runs, and returns its kubeconfig. The lab finds that control plane, too.
	Plane func(context.Context) (kubeconfig string, err error)
	// Known, when set, gets the verdicts of an exercise's own check as soon as they are decided, up to the first failure.
	Known func([]Result)
	// Checks is the folder that keeps the loop of the last check of each exercise; when it is empty, no loop is kept.
	Checks string
}

// checksOf returns the lab's checks of an exercise, and those of the exercises before it. Checks of programs that are
// not operators yet apply only to their exercise.
func checksOf(all []Exercise, e Exercise) (own, earlier []string) {
	for _, b := range before(all, e) {
		for _, check := range b.Lab {
			if !strings.HasPrefix(check, "stage/") && !slices.Contains(earlier, check) && !slices.Contains(e.Lab, check) &&
				!slices.Contains(e.Except, check) && !slices.Contains(e.Loses, check) {
				earlier = append(earlier, check)
			}
		}
	}
	return e.Lab, earlier
}

// Check examines the reader's files. An error is not about these files, but about a need of the check.
func (c Course) Check(ctx context.Context, e Exercise) (Judgement, error) {
	return c.check(e, func() error { return c.Module(e) }, func(r *Judgement) error {
		switch {
		case e.Specification != "":
			return c.specified(ctx, e, r)
		case e.Test != nil:
			return c.chain(e, r, func(b Exercise) ([]Result, error) { return c.Judge.Test(ctx, b, c.Dir(e)) })
		case e.CRD != nil:
			kubeconfig, err := c.Plane(ctx)
			if err != nil {
				return err
			}
			path := filepath.Join(c.Dir(e), e.File)
			return c.chain(e, r, func(b Exercise) ([]Result, error) { return c.Judge.CRD(ctx, b, path, kubeconfig) })
		}
		return c.lab(ctx, e, r)
	})
}

// check prepares the reader's files and judges them: module makes the module when it is missing.
func (c Course) check(e Exercise, module func() error, judge func(*Judgement) error) (r Judgement, err error) {
	if r.Notes, err = c.Sound(e); err != nil {
		return r, err
	}
	if _, err := os.Stat(filepath.Join(c.Dir(e), "go.mod")); err != nil {
		if err := module(); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	err = judge(&r)
	if r.Took = time.Since(begin) - r.Built; errors.Is(err, errCompile) {
		r.Compile, err = c.withImports(e, err), nil
	}
	return r, err
}

func (c Course) lab(ctx context.Context, e Exercise, r *Judgement) error {
	own, earlier := checksOf(c.All, e)
	job := newJob("reader", "", own, needNoStatus(slices.Concat(own, earlier)))
	job.Then = earlier
	return c.operate(ctx, e, ".", job, own, r)
}

// operate builds the operator in the reader's files while the lab starts, runs the checks of a job on it, and keeps the
// loop of the check that counts.
func (c Course) operate(ctx context.Context, e Exercise, main string, job Job, own []string, r *Judgement) error {
	scratch, err := os.MkdirTemp("", "exercise-")
	if err != nil {
		return ways(err)
	}
	defer os.RemoveAll(scratch)
	ledger := ""
	if c.Checks != "" {
		ledger = filepath.Join(scratch, "ledger.jsonl")
	}
	labCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lab *startedLab
	var labErr error
	var starting sync.WaitGroup
	starting.Go(func() {
		if _, labErr = c.Plane(labCtx); labErr == nil {
			lab, labErr = c.Judge.startLab(labCtx, ledger)
		}
	})
	begin := time.Now()
	job.Program = filepath.Join(scratch, "operator")
	err = c.Judge.Build(ctx, c.Dir(e), main, filepath.Join("work", e.folder()), job.Program)
	if r.Built = time.Since(begin); err != nil {
		cancel()
	}
	starting.Wait()
	if labErr == nil && err != nil {
		lab.end()
	}
	if err := cmp.Or(err, labErr); err != nil {
		return err
	}
	verdicts, err := lab.run(ctx, []Job{job}, c.known(own, time.Now(), r))
	if err != nil {
		return err
	}
	r.Own, r.Earlier = split(verdicts[job.Name], own)
	return c.keep(ctx, e, ledger, r)
}

// known passes the verdicts of an exercise's own check to Known, in the order of the experiments, as soon as they are
// decided: all of them have passed, or the first failure is known.
func (c Course) known(own []string, built time.Time, r *Judgement) func(string, Result) {
	all := map[string]Result{}
	return func(_ string, v Result) {
		if !slices.Contains(own, v.ID) || c.Known == nil || r.shown {
			return
		}
		all[v.ID] = v
		if sorted, decided := inOrder(own, all); decided {
			c.Known(sorted)
			r.First, r.shown = time.Since(built), true
		}
	}
}

// inOrder returns the verdicts in the order of the checks, up to the first failure. They are decided when no verdict up to
// it is missing.
func inOrder(checks []string, all map[string]Result) (sorted []Result, decided bool) {
	for _, check := range checks {
		v, known := all[check]
		if !known {
			return sorted, false
		}
		if sorted = append(sorted, v); !v.Passed() {
			return sorted, true
		}
	}
	return sorted, true
}

// split separates the verdicts of an exercise's own checks from the others. Without names, all checks are its own.
func split(all []Result, own []string) (mine, earlier []Result) {
	for _, v := range all {
		if slices.Contains(own, v.ID) || len(own) == 0 {
			mine = append(mine, v)
		} else {
			earlier = append(earlier, v)
		}
	}
	return mine, earlier
}

// chain judges the reader's files by an exercise, and by the earlier exercises with a check of the same kind.
func (c Course) chain(e Exercise, r *Judgement, judge func(Exercise) ([]Result, error)) (err error) {
	if r.Own, err = judge(e); err != nil {
		return err
	}
	for _, b := range before(c.All, e) {
		if (b.Test == nil) != (e.Test == nil) || (b.CRD == nil) != (e.CRD == nil) || slices.Contains(e.Except, b.ID) {
			continue
		}
		some, err := judge(b)
		if r.Earlier = append(r.Earlier, some...); err != nil {
			return err
		}
	}
	return nil
}

// Changed returns another value whenever a file of the reader was saved.
func (c Course) Changed() (mark string) {
	_ = filepath.WalkDir(c.Work, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(entry.Name(), ".") {
			if entry != nil && entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			mark += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return mark
}

// Names returns the names of the files that either map has.
func Names(a, b map[string][]byte) []string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

// Selected returns the exercises that CI proves at every change: the second exercise of each chapter.
func Selected(all []Exercise) (some []Exercise) {
	count := map[string]int{}
	for _, e := range all {
		if count[e.Chapter]++; count[e.Chapter] == 2 {
			some = append(some, e)
		}
	}
	return some
}
