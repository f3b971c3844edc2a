package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Report is the result of one examination of the reader's files.
type Report struct {
	Notes []string
	// Own are the verdicts of the exercise's own check, Earlier those of the exercises before it.
	Own, Earlier []Verdict
	// Compile is set when the program does not compile.
	Compile error `json:"-"`
	// Built is how long the compiler took, First the time from then to the verdicts of the exercise's own check, Took
	// the time to all verdicts.
	Built, First, Took time.Duration
	// Loop are lines of the program's loop in the check that passed. Kept means that `workshop watch` has the whole
	// loop.
	Loop []string `json:",omitempty"`
	Kept bool     `json:",omitempty"`
	// shown are the exercise's own verdicts that Course.Known has received.
	shown int
}

// Passed reports whether all checks passed.
func (r Report) Passed() bool {
	failed := func(v Verdict) bool { return !v.Passed() }
	return r.Compile == nil && len(r.Own) > 0 && !slices.ContainsFunc(slices.Concat(r.Own, r.Earlier), failed)
}

// Failure returns all messages about failed checks, for patterns to match.
func (r Report) Failure() string {
	var text []string
	if r.Compile != nil {
		text = append(text, r.Compile.Error())
	}
	for _, v := range slices.Concat(r.Own, r.Earlier) {
		if !v.Passed() {
			text = append(text, v.Check+": "+string(v.Verdict), v.Reason, strings.Join(v.Evidence, "\n"))
		}
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
	// Known, when set, gets the verdicts of an exercise's own check as soon as the lab has them: the checks of earlier
	// exercises take longer.
	Known func(Verdict)
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
func (c Course) Check(ctx context.Context, e Exercise) (r Report, err error) {
	if r.Notes, err = c.Sound(e); err != nil {
		return r, err
	}
	if _, err := os.Stat(filepath.Join(c.Dir(e), "go.mod")); err != nil {
		if err := c.Module(e); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) - r.Built }()
	switch {
	case e.Test != nil:
		err = c.tests(ctx, e, &r)
	case e.CRD != nil:
		err = c.crds(ctx, e, &r)
	default:
		err = c.lab(ctx, e, &r)
	}
	if errors.Is(err, errCompile) {
		r.Compile, err = err, nil
	}
	return r, err
}

func (c Course) lab(ctx context.Context, e Exercise, r *Report) error {
	own, earlier := checksOf(c.All, e)
	checks := slices.Concat(own, earlier)
	return c.operate(ctx, e, ".", newJob("reader", "", checks, needNoStatus(checks)), own, r)
}

// operate builds the operator in the reader's files, runs the checks of a job on it, and keeps the loop of the check that
// counts.
func (c Course) operate(ctx context.Context, e Exercise, main string, job Job, own []string, r *Report) error {
	scratch, err := os.MkdirTemp("", "exercise-")
	if err != nil {
		return ways(err)
	}
	defer os.RemoveAll(scratch)
	begin := time.Now()
	job.Program = filepath.Join(scratch, "operator")
	err = c.Judge.Build(ctx, c.Dir(e), main, filepath.Join("work", e.folder()), job.Program)
	if r.Built = time.Since(begin); err != nil {
		return err
	}
	if _, err := c.Plane(ctx); err != nil {
		return err
	}
	ledger := filepath.Join(scratch, "ledger.jsonl")
	verdicts, err := c.Judge.Lab(ctx, []Job{job}, ledger, c.known(own, time.Now(), r))
	if err != nil {
		return err
	}
	r.Own, r.Earlier = split(verdicts[job.Name], own)
	return c.keep(ctx, e, ledger, r)
}

// known passes the verdicts of an exercise's own check to Known.
func (c Course) known(own []string, built time.Time, r *Report) func(string, Verdict) {
	return func(_ string, v Verdict) {
		if slices.Contains(own, v.Check) && c.Known != nil {
			c.Known(v)
			r.First, r.shown = time.Since(built), r.shown+1
		}
	}
}

// split separates the verdicts of an exercise's own checks from the others.
func split(all []Verdict, own []string) (mine, earlier []Verdict) {
	for _, v := range all {
		if slices.Contains(own, v.Check) {
			mine = append(mine, v)
		} else {
			earlier = append(earlier, v)
		}
	}
	return mine, earlier
}

func (c Course) tests(ctx context.Context, e Exercise, r *Report) (err error) {
	if r.Own, err = c.Judge.Test(ctx, e, c.Dir(e)); err != nil {
		return err
	}
	for _, b := range before(c.All, e) {
		if b.Test == nil || slices.Contains(e.Except, b.ID) {
			continue
		}
		some, err := c.Judge.Test(ctx, b, c.Dir(e))
		if r.Earlier = append(r.Earlier, some...); err != nil {
			return err
		}
	}
	return nil
}

func (c Course) crds(ctx context.Context, e Exercise, r *Report) error {
	kubeconfig, err := c.Plane(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir(e), e.File)
	if r.Own, err = c.Judge.CRD(ctx, e, path, kubeconfig); err != nil {
		return err
	}
	for _, b := range before(c.All, e) {
		if b.CRD == nil || slices.Contains(e.Except, b.ID) {
			continue
		}
		some, err := c.Judge.CRD(ctx, b, path, kubeconfig)
		if r.Earlier = append(r.Earlier, some...); err != nil {
			return err
		}
	}
	return nil
}

// Wrong returns the known wrong answer that a failure looks like, if any.
func (c Course) Wrong(e Exercise, failure string) (Wrong, bool) {
	files, err := c.Written(e)
	if err != nil || failure == "" {
		return Wrong{}, false
	}
	if starter, err := c.Files(e, e.Starter); err == nil && maps.EqualFunc(files, starter, bytes.Equal) {
		return Wrong{}, false // the reader has not written a file yet
	}
	if some := e.Recognise(failure, source(files)); len(some) > 0 {
		return some[0], true
	}
	return Wrong{}, false
}

// Hint returns the n-th hint, from 0: the hint for a known wrong answer comes first.
func (c Course) Hint(e Exercise, n int, failure string) (text string, last bool) {
	hints := []string{"A nudge: " + reflowed(e.Hints.Nudge), "Why: " + reflowed(e.Hints.Explanation),
		"The line:\n" + e.Hints.Line}
	if w, ok := c.Wrong(e, failure); ok {
		hints = append([]string{fmt.Sprintf("This looks like a known wrong answer (%s).\n%s", w.Name, reflowed(w.Hint))},
			hints...)
	}
	n = min(n, len(hints)-1)
	return strings.TrimSpace(hints[n]), n == len(hints)-1
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
	all := union(names(a), names(b))
	slices.Sort(all)
	return all
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
