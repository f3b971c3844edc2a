package exercise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/examine/supervisor"
	"example.com/operator-workshop/scripts/internal/translation"
)

// A Result is the result of a check of the reader's files.
type Result = outcome.Result

// A Judge examines files in a work folder.
type Judge struct {
	// Root is the checkout, Bin its programs.
	Root, Bin string
	// Env is the environment of programs.
	Env []string
	// Waiting, when set, is called with a step that takes more than a moment, and the time that it has taken: a reader
	// should not look at an empty terminal for a minute.
	Waiting func(what string, since time.Duration)
	// Fixtures is how many control planes the lab starts for itself; with 0 it uses the kept control plane.
	Fixtures int
}

// errCompile is returned, wrapped, when the reader's program does not compile.
var errCompile = errors.New("it does not compile")

// Wait calls Waiting while a step takes more than a moment, until done is called.
func (j Judge) Wait(what string) (done func()) {
	return j.wait(func() string { return what }, 2*time.Second)
}

// wait calls Waiting after a time, and then every ten seconds, until done is called.
func (j Judge) wait(what func() string, first time.Duration) (done func()) {
	if j.Waiting == nil {
		return func() {}
	}
	begin, next, ended := time.Now(), time.NewTimer(first), make(chan struct{})
	var said sync.WaitGroup
	said.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-next.C:
				j.Waiting(what(), time.Since(begin))
				next.Reset(10 * time.Second)
			}
		}
	})
	return func() {
		close(ended)
		said.Wait()
	}
}

// Build compiles the program in a work folder. Messages call this folder shown.
func (j Judge) Build(ctx context.Context, dir, pkg, shown, program string) error {
	defer j.Wait("compiling " + shown + " (up to a minute the first time)")()
	// The compiler need not optimize the reader's package: that takes longer than the package will run.
	cmd := j.command(ctx, dir, "go", "build", "-buildvcs=false", "-gcflags=-N -l", "-ldflags=-s -w", "-o", program, pkg)
	// At Ctrl-C the go command leaves its work folder behind, so it uses the program's folder, which is removed.
	cmd.Env = append(slices.Clone(j.Env), "GOTMPDIR="+filepath.Dir(program))
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return compileError(string(out), shown, err)
	}
	return nil
}

// compileLine finds the places in the reader's folder, for Go names others by their whole path.
var compileLine = regexp.MustCompile(`(?m)^(\s*)(?:\./)?(\w[\w./-]*\.go):(\d+)`)

// compileError returns Go's messages, with paths that can be opened, and what to do.
func compileError(out, shown string, err error) error {
	known := map[string]bool{} // controller-gen prints a message once for each of its generators
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(l string) bool {
		again := known[l] && compileLine.MatchString(l)
		known[l] = true
		return again || strings.HasPrefix(l, "# ")
	})
	text := compileLine.ReplaceAllString(strings.Join(lines, "\n"), "${1}"+shown+"/$2:$3")
	switch at := compileLine.FindStringSubmatch(strings.Join(lines, "\n")); {
	case strings.Contains(out, "missing go.sum entry"):
		return fmt.Errorf("%w:\n%s\nDelete %s/go.mod: `make check` writes it and go.sum again", errCompile, text, shown)
	case at != nil:
		return fmt.Errorf("%w:\n%s\n%s", errCompile, text,
			fmt.Sprintf(translation.Mark("Open %s at line %s"), shown+"/"+at[2], at[3]))
	case strings.Contains(out, "go.mod") || strings.Contains(out, "go.sum"):
		return fmt.Errorf("%w:\n%s\nDelete %s/go.mod: `make check` writes it and go.sum again", errCompile, text, shown)
	case strings.Contains(out, "no space left"):
		return ways(fmt.Errorf("build the program: %w", syscall.ENOSPC))
	}
	return fmt.Errorf("%w (%w):\n%s", errCompile, err, text)
}

// command is a program of the lab or of Go, with time to clean up when ctx ends.
func (j Judge) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := process.Command(ctx, time.Minute, program, args...)
	cmd.Dir, cmd.Env = dir, j.Env
	return cmd
}

// A Job is a program and the checks that the lab runs on it.
type Job = outcome.Job

// newJob makes the job of an exercise.
func newJob(name, program string, checks []string, objects bool) Job {
	if objects {
		name += "o" // one program may be judged in both ways
	}
	return Job{Name: name, Program: program, Checks: checks, Objects: objects}
}

// needNoStatus reports whether checks judge objects alone. Before behaviour/01-status requires a status, no other check
// requires it.
func needNoStatus(checks []string) bool {
	return !slices.Contains(checks, "behaviour/01-status") && !slices.Contains(checks, outcome.Behaviours)
}

// A startedLab is a lab that waits for its jobs.
type startedLab struct {
	judge  Judge
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	stderr output.Buffer
}

// startLab starts the lab, which prepares its control plane. Unless ledger is empty, the lab records in this file the
// events that the programs received and the requests that they sent.
func (j Judge) startLab(ctx context.Context, ledger string) (l *startedLab, err error) {
	l = &startedLab{judge: j, cmd: j.command(ctx, j.Root, filepath.Join(j.Bin, "lab"), "judge",
		"--fixtures", fmt.Sprint(max(j.Fixtures, 1)), "--ledger", ledger)}
	l.cmd.Stderr = &l.stderr
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return l, l.cmd.Start()
}

// end ends a lab that gets no jobs.
func (l *startedLab) end() { _ = errors.Join(l.in.Close(), l.cmd.Wait()) }

// Lab runs jobs and returns the verdicts by job, in the order of its checks.
func (j Judge) Lab(ctx context.Context, jobs []Job, each func(job string, v Result)) (map[string][]Result, error) {
	lab, err := j.startLab(ctx, "")
	if err != nil {
		return nil, err
	}
	return lab.run(ctx, jobs, each)
}

// run is Lab in a lab that was started.
func (l *startedLab) run(ctx context.Context, jobs []Job, each func(job string, v Result)) (map[string][]Result, error) {
	var known atomic.Int32
	defer l.judge.wait(func() string { return checking(int(known.Load()), jobs) }, 5*time.Second)()
	if err := errors.Join(json.NewEncoder(l.in).Encode(jobs), l.in.Close()); err != nil && !errors.Is(err, syscall.EPIPE) {
		return nil, err
	}
	all, wrong := map[string][]Result{}, []error{}
	for d := json.NewDecoder(l.out); ; {
		var line outcome.Judged
		if d.Decode(&line) != nil {
			break
		}
		if line.Error != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s", line.Job, line.Error))
			continue
		}
		all[line.Job] = append(all[line.Job], line.Result)
		known.Add(1)
		if each != nil {
			each(line.Job, line.Result)
		}
	}
	err := l.cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		wrong = append(wrong, fmt.Errorf("%w: %s", err, strings.TrimSpace(l.stderr.String())))
	}
	for _, job := range jobs {
		order := slices.Concat(job.Checks, job.Then)
		slices.SortStableFunc(all[job.Name], func(a, b Result) int { // they arrive in the order of their ends
			return cmp.Compare(slices.Index(order, a.ID), slices.Index(order, b.ID))
		})
		for _, check := range job.Checks {
			if check != outcome.Fast && check != outcome.Behaviours && !slices.ContainsFunc(all[job.Name],
				func(v Result) bool { return v.ID == check }) && len(wrong) == 0 {
				wrong = append(wrong, fmt.Errorf("%s: no verdict on %s", job.Name, check))
			}
		}
	}
	if len(wrong) > 0 {
		return all, fmt.Errorf("the lab could not judge: %w\nIts control plane may have gone away. "+
			"Run the same command again: it starts the missing parts again", errors.Join(wrong...))
	}
	return all, nil
}

// checking names the check that runs. The number of some sets of checks is known only to the lab.
func checking(known int, jobs []Job) string {
	all := 0
	for _, job := range jobs {
		if job.Specification != "" || slices.Contains(job.Checks, outcome.Fast) || slices.Contains(job.Then, outcome.Fast) ||
			slices.Contains(job.Checks, outcome.Behaviours) {
			return fmt.Sprintf("running the checks, %d are done", known)
		}
		all += len(job.Checks) + len(job.Then)
	}
	return fmt.Sprintf("running check %d of %d", min(known+1, all), all)
}

// Test runs the exercise's Go tests as if their files were in the work folder.
func (j Judge) Test(ctx context.Context, e Exercise, dir string) ([]Result, error) {
	scratch, err := os.MkdirTemp("", "exercise-")
	if err != nil {
		return nil, ways(err)
	}
	defer os.RemoveAll(scratch)
	pkg := "./" + filepath.ToSlash(filepath.Clean(e.Test.Package))
	replace := map[string]string{}
	for _, file := range e.Test.Files {
		replace[filepath.Join(dir, pkg, filepath.Base(file))] = filepath.Join(j.Root, e.Chapter, file)
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	if err := write(overlay, data); err != nil {
		return nil, err
	}
	defer j.Wait("compiling and running the tests of " + e.ID)()
	program := filepath.Join(scratch, "tests")
	compile := j.command(ctx, dir, "go", "test", "-c", "-overlay", overlay, "-o", program, pkg)
	compile.Env = append(slices.Clone(j.Env), "GOTMPDIR="+scratch)
	if out, err := compile.CombinedOutput(); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, compileError(string(out), filepath.Join("work", e.Chapter), err)
	}
	begin, limits := time.Now(), supervisor.Usual
	limits.Time = 2 * time.Minute // a program may loop without end
	var out output.Buffer
	exit, err := supervisor.Run(ctx, supervisor.Command{Path: program, Dir: filepath.Join(dir, pkg), Output: &out,
		Args: []string{"-test.run=" + e.Test.Run, "-test.paniconexit0"}, Limits: limits,
		Env: append(slices.Clone(j.Env), "WORKSHOP_ROOT="+j.Root, "KUBEBUILDER_ASSETS="+j.Bin, "TMPDIR="+scratch)})
	if err != nil {
		return nil, err
	}
	v := Result{ID: e.ID + " " + e.Test.Run, Title: e.Title, Verdict: "passed", Took: time.Since(begin)}
	switch text := out.String(); {
	case exit.Limit != "":
		v.Verdict, v.What = "failed", "the program with the tests "+exit.String()
	case exit.Code == 0 && strings.Contains(text, "no tests to run"):
		return nil, fmt.Errorf("no test matches %s", e.Test.Run)
	case exit.Code != 0:
		v.Verdict, v.What = "failed", testFailure(text)
	}
	return []Result{v}, nil
}

var testNoise = regexp.MustCompile(`^(=== |--- |FAIL|ok |PASS|exit status|\s*$)`)
var testPlace = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// A test may print without end: these limits are the number of lines shown of the beginning and of the end, and the
// number of bytes shown of each line.
const mostLines, mostOfLine = 100, 1000

// testFailure returns the output of a failed test, without the words of the test runner.
func testFailure(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if !testNoise.MatchString(strings.TrimSpace(line)) {
			line = testPlace.ReplaceAllString(strings.TrimRight(line, "\n"), "")
			lines = append(lines, line[:min(len(line), mostOfLine)])
		}
	}
	if left := len(lines) - 2*mostLines; left > 0 {
		lines = slices.Concat(lines[:mostLines], []string{fmt.Sprintf("… %d lines are left out …", left)},
			lines[len(lines)-mostLines:])
	}
	return strings.Join(lines, "\n")
}
