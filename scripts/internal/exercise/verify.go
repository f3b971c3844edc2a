package exercise

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An attempt is one state of the reader's files to which a rule applies.
type attempt struct {
	e Exercise
	// what names the state: "starter", "solution", or "wrong: NAME".
	what    string
	files   map[string][]byte
	own     []string // checks of the lab
	earlier []string
	lost    []string // checks that must fail
	objects bool     // as in Job
	job     Job      // without checks when it did not compile
	report  Judgement
	losses  []Result
}

func (t *attempt) String() string { return t.e.ID + " " + t.what }

// shown is what messages call the files. A starter and a solution have a folder; a wrong answer has none.
func (t *attempt) shown() string {
	switch t.what {
	case "starter":
		return filepath.Join(t.e.Chapter, t.e.Starter)
	case "solution":
		return filepath.Join(t.e.Chapter, t.e.Solution)
	}
	return t.String()
}

// Counts are the numbers of things that Verify has proved.
type Counts struct{ Exercises, Starters, Solutions, Wrong, Jumps int }

func (c Counts) String() string {
	return fmt.Sprintf("%d exercises: %d starters fail for the stated reason, %d solutions pass with all before them, "+
		"%d wrong answers get their own hint, %d jumps land",
		c.Exercises, c.Starters, c.Solutions, c.Wrong, c.Jumps)
}

// Verify checks that exercises obey the rules: the starter compiles and fails for the stated reason, the solution
// passes with all checks before it, each wrong answer is recognised by its own entry alone, each jump gives a starter
// on which all earlier checks pass. c is a course in a separate folder. Verify returns counts of the proofs, and an
// error for each violation.
func (c Course) Verify(ctx context.Context, some []Exercise, print func(format string, args ...any)) (Counts, error) {
	n := Counts{Exercises: len(some)}
	var all []*attempt
	for _, e := range some {
		attempts, err := c.attempts(e)
		if err != nil {
			return n, err
		}
		all = append(all, attempts...)
	}
	if err := c.try(ctx, all, print); err != nil {
		return n, err
	}
	err := c.judgeAll(all, &n)
	return n, err
}

func (c Course) judgeAll(all []*attempt, n *Counts) error {
	var wrong []error
	for _, t := range all {
		if err := c.judge(t, n); err != nil {
			wrong = append(wrong, fmt.Errorf("%v: %w", t, err))
		}
	}
	return errors.Join(wrong...)
}

// attempts returns the attempts of an exercise. The attempt of the starter begins with the reader's jump.
func (c Course) attempts(e Exercise) (all []*attempt, err error) {
	own, earlier := checksOf(c.All, e)
	all, err = c.pair(e)
	if err != nil {
		return nil, err
	}
	solution := all[1].files
	for _, w := range e.Wrong {
		files, err := w.apply(e, solution)
		if err != nil {
			return nil, fmt.Errorf("exercise %s, wrong answer %q: %w", e.ID, w.Name, err)
		}
		all = append(all, &attempt{e: e, what: "wrong: " + w.Name, files: files, own: own, earlier: earlier,
			objects: all[1].objects})
	}
	return all, nil
}

// pair returns the attempts of the starter and of the solution.
func (c Course) pair(e Exercise) ([]*attempt, error) {
	if _, err := c.Goto(e, Always); err != nil {
		return nil, err
	}
	files, err := c.Written(e)
	if err != nil {
		return nil, err
	}
	starter := &attempt{e: e, what: "starter", files: files, own: e.Lab}
	if chain := before(c.All, e); len(chain) > 0 {
		lab, more := checksOf(c.All, chain[len(chain)-1])
		starter.earlier = slices.DeleteFunc(slices.Concat(lab, more),
			func(id string) bool { return strings.HasPrefix(id, "stage/") })
	}
	files, err = c.Files(e, e.Solution)
	if err != nil {
		return nil, err
	}
	isOwn := func(check string) bool { return slices.Contains(e.Lab, check) }
	solution := &attempt{e: e, what: "solution", files: files, own: e.Lab,
		earlier: slices.DeleteFunc(passed(c.All, e), isOwn), lost: e.Loses}
	for _, t := range []*attempt{starter, solution} {
		t.objects = needNoStatus(slices.Concat(t.own, t.earlier))
	}
	return []*attempt{starter, solution}, nil
}

// passed returns the checks of the lab that a solution must pass: `make check` runs them, or a list has them as `also`.
func passed(all []Exercise, e Exercise) []string {
	own, earlier := checksOf(all, e)
	checks := slices.Concat(own, earlier)
	for _, b := range append(before(all, e), e) {
		checks = union(checks, b.Also)
	}
	return slices.DeleteFunc(checks, func(id string) bool {
		return slices.Contains(e.Except, id) || slices.Contains(e.Loses, id)
	})
}

// apply makes a wrong answer from a solution.
func (w Wrong) apply(e Exercise, solution map[string][]byte) (map[string][]byte, error) {
	files := maps.Clone(solution)
	for _, r := range w.Replace {
		name := cmp.Or(r.File, e.File)
		if n := strings.Count(string(files[name]), r.Old); n != 1 {
			return nil, fmt.Errorf("%q is %d times in %s of the solution, not once", r.Old, n, name)
		}
		files[name] = []byte(strings.Replace(string(files[name]), r.Old, r.New, 1))
	}
	return files, nil
}

// try examines all attempts. Programs for the lab are built first, each distinct program once, and judged together.
func (c Course) try(ctx context.Context, all []*attempt, print func(format string, args ...any)) error {
	dir, err := os.MkdirTemp("", "exercises-")
	if err != nil {
		return ways(err)
	}
	defer os.RemoveAll(dir)
	var jobs []Job
	for at, t := range all {
		if _, err := c.Put(t.e, t.files); err != nil {
			return err
		}
		if len(t.e.Lab) == 0 && t.e.Specification == "" {
			print("%v", t)
			if t.report, err = c.Check(ctx, t.e); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
			continue
		}
		t.job = newJob(digest(t), filepath.Join(dir, digest(t)), slices.Concat(t.own, t.earlier, t.lost), t.objects)
		if at := slices.IndexFunc(jobs, func(j Job) bool { return j.Name == t.job.Name }); at >= 0 {
			jobs[at].Checks = union(jobs[at].Checks, t.job.Checks)
			continue
		}
		print("building %v (%d of %d)", t, at+1, len(all))
		shown, err := t.shown(), error(nil)
		if t.e.Specification != "" {
			t.job = Job{Name: digest(t), Program: t.job.Program, Specification: c.specification(t.e), CRD: t.job.Program + "-crd"}
			err = c.Judge.Generate(ctx, c.Dir(t.e), t.job.CRD, shown)
		}
		if err == nil {
			err = c.Judge.Build(ctx, c.Dir(t.e), ".", shown, t.job.Program)
		}
		if errors.Is(err, errCompile) {
			t.report.Compile, t.job = err, Job{}
		} else if err != nil {
			return err
		} else {
			jobs = append(jobs, t.job)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	print("judging %d programs", len(jobs))
	verdicts, err := c.Judge.Lab(ctx, jobs, nil)
	if err != nil {
		return err
	}
	for _, t := range all {
		if all := verdicts[t.job.Name]; t.job.Name != "" {
			t.report.Own, t.report.Earlier, t.losses = chosenOf(all, t.own), chosenOf(all, t.earlier), chosenOf(all, t.lost)
			if t.e.Specification != "" {
				t.report.Own = all
			}
		}
	}
	return nil
}

// digest returns a name of a program, made from its chapter and files. The lab uses it as the name of a user.
func digest(t *attempt) string {
	sum := sha256.New()
	fmt.Fprintln(sum, t.e.Chapter)
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if t.e.isGenerated(name) {
			continue
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(t.files[name]), t.files[name])
	}
	return fmt.Sprintf("x%x", sum.Sum(nil)[:6])
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func chosenOf(all []Result, checks []string) (some []Result) {
	for _, v := range all {
		if slices.Contains(checks, v.ID) {
			some = append(some, v)
		}
	}
	return some
}

// judge compares the result of an attempt with the rules, and counts.
func (c Course) judge(t *attempt, n *Counts) error {
	failed := func(v Result) bool { return !v.Passed() }
	failure := t.report.Failure()
	switch t.what {
	case "solution":
		if !t.report.Passed() {
			return fmt.Errorf("it must pass its check and all before it:\n%s", failure)
		}
		for _, v := range t.losses {
			if v.Passed() {
				return fmt.Errorf("it passes %s, which its list has under loses", v.ID)
			}
		}
		n.Solutions++
	case "starter":
		if t.report.Compile != nil {
			return t.report.Compile
		}
		if !slices.ContainsFunc(t.report.Own, failed) || len(t.e.Lab) > 0 && t.report.on(t.e.Lab[0]).Passed() {
			return errors.New("the check passes on the starter: it does not show what the exercise asks for")
		}
		if !regexp.MustCompile(`(?m)` + t.e.Fails).MatchString(failure) {
			return fmt.Errorf("its check must fail for %q:\n%s", t.e.Fails, failure)
		}
		n.Starters++
		for _, v := range t.report.Earlier {
			if failed(v) {
				return fmt.Errorf("the jump lands where an earlier check fails: %s: %s", v.ID, v.What)
			}
		}
		n.Jumps++
	default:
		if t.report.Passed() {
			return errors.New("the check passes on it")
		}
		if err := t.recognised(failure); err != nil {
			return err
		}
		n.Wrong++
	}
	return nil
}

// recognised returns an error unless the entry of a wrong answer, and no other, recognises it. When its entry names a
// mistake, the mistake must be the first that matches.
func (t *attempt) recognised(failure string) error {
	var names []string
	for _, w := range t.e.Recognise(failure, source(t.files)) {
		names = append(names, w.Name)
	}
	own := strings.TrimPrefix(t.what, "wrong: ")
	if at := slices.IndexFunc(t.e.Wrong, func(w Wrong) bool { return w.Name == own }); t.e.Wrong[at].Mistake != "" {
		own, names = t.e.Wrong[at].Mistake, names[:min(len(names), 1)]
	}
	if len(names) != 1 || names[0] != own {
		return fmt.Errorf("it is recognised as %q, want %q:\n%s", names, own, failure)
	}
	return nil
}
