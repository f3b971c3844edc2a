package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/room"
	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/translation"
)

// errNotPassed ends a command that has printed the reason already.
var errNotPassed = errors.New("not every check passed")

var errNoSolution = errors.New("the capstone has no solution: its specification is yours; `make hint` helps")

// course returns the exercises of this checkout, with the reader's files in work/. They are judged on the kept control
// plane.
func (w workshop) course() (exercise.Course, error) {
	all, err := exercise.Load(w.root)
	return exercise.Course{
		Workspace: exercise.Workspace{Root: w.root, Work: filepath.Join(w.root, "work"), Now: time.Now},
		Judge:     exercise.Judge{Root: w.root, Bin: w.bin(), Env: w.chapterEnv(), Waiting: waiting},
		All:       all,
		Plane:     w.keptPlane,
		Checks:    filepath.Join(w.state, "checks"),
	}, err
}

// waiting is printed while a step takes more than a moment.
func waiting(what string, since time.Duration) {
	fmt.Printf("  %s: %d s\n", what, int(since.Seconds()))
}

// A checkProgress prints the steps of a check that take more than a moment. Below a verdict, a terminal shows one step at a
// time, and other output has none: a line there would stand in the middle of the card.
type checkProgress struct {
	out             io.Writer
	isTerminal      bool
	verdict, erases atomic.Bool
}

func (p *checkProgress) waiting(what string, since time.Duration) {
	switch {
	case !p.verdict.Load():
		fmt.Fprintf(p.out, "  %s: %d s\n", what, int(since.Seconds()))
	case p.isTerminal:
		p.erases.Store(true)
		fmt.Fprintf(p.out, "\r  %s: %d s\x1b[K", what, int(since.Seconds()))
	}
}

func (p *checkProgress) end() {
	if p.erases.Load() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// keptPlane starts the control plane of the lab that stays up between runs, and returns its kubeconfig.
func (w workshop) keptPlane(ctx context.Context) (string, error) {
	if err := w.lab(ctx); err != nil {
		return "", err
	}
	kept := w.cluster().Kept()
	if running, all := cluster.New(w.bin(), kept, func(string, ...any) {}).Running(); running == all {
		return filepath.Join(kept, "kubeconfig"), nil
	}
	fmt.Println("starting a control plane for the checks; it stays up, `make down` ends it")
	up := w.program(ctx, filepath.Join(w.bin(), "lab"), "up")
	up.Dir = w.root
	if out, err := up.CombinedOutput(); err != nil {
		return "", fmt.Errorf("start the control plane: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return filepath.Join(kept, "kubeconfig"), nil
}

// lab builds the lab and the programs that it runs.
func (w workshop) lab(ctx context.Context) error {
	if err := w.builder().Ensure(ctx, tools.Local...); err != nil {
		return err
	}
	return w.compile(ctx, labModule, "./cmd/lab", "lab", labModule, examineModule, "scripts/internal")
}

// compile compiles a program into bin/ unless its sources are as they were: to link a program takes longer than many a
// check. A file beside the program has the checksum of its sources. The times of files say less, because a copy of bin/
// is newer than all sources.
func (w workshop) compile(ctx context.Context, module, pkg, name string, sources ...string) error {
	sum, err := w.sum(sources...)
	if err != nil {
		return err
	}
	program, known := filepath.Join(w.bin(), name), filepath.Join(w.bin(), "."+name+".sum")
	old, _ := os.ReadFile(known) // missing before the first time
	if _, err := os.Stat(program); err == nil && string(old) == sum {
		return nil
	}
	if err := w.builder().Program(ctx, filepath.Join(w.root, module), pkg, name); err != nil {
		return err
	}
	return os.WriteFile(known, []byte(sum), 0o600)
}

// sum returns the checksum of the files in some folders, without tests.
func (w workshop) sum(folders ...string) (string, error) {
	all := sha256.New()
	for _, dir := range folders {
		err := filepath.WalkDir(filepath.Join(w.root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && (entry.Name() == "bin" || entry.Name() == "out") {
				return fs.SkipDir
			}
			if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			fmt.Fprintf(all, "%s %d\n%s", strings.TrimPrefix(path, w.root), len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// A task is the exercise that a command is about, with the reader's state. A bug has also a description.
type task struct {
	exercise.Exercise
	state exercise.State
	bug   *exercise.Bug
}

// meant returns the exercise that a reader names, else the current exercise or bug, else the next exercise.
func (w workshop) meant(c exercise.Course, id string) (t task, err error) {
	if t.state, err = c.State(); err != nil {
		return t, err
	}
	if id == "" && exercise.IsBug(t.state.Current) {
		bug, err := w.currentBug(t.state)
		t.Exercise, t.bug = bug.Exercise(), &bug
		return t, err
	}
	if id = cmp.Or(id, t.state.Current); id == "" {
		next, ok := c.Next(t.state)
		if t.Exercise = next; !ok {
			return t, errors.New("there is no exercise left; EX=04.3 names one")
		}
		return t, nil
	}
	t.Exercise, err = exercise.Find(c.All, id)
	return t, err
}

// exerciseCommands returns the learner's commands.
func exerciseCommands() []*cobra.Command {
	return []*cobra.Command{beginCommand(), gotoCommand(), resetCommand(), restoreCommand(), checkCommand(), hintCommand(),
		solutionCommand(), progressCommand(), bugCommand(), exercisesVerifyCommand()}
}

// courseCommand makes a command with --ex.
func courseCommand(name, short string, do func(cmd *cobra.Command, w workshop, c exercise.Course,
	id string) error) *cobra.Command {
	var id, language string
	cmd := newCommand(name, short, cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			c, err := w.course()
			if err == nil && language != "" {
				c.All, err = w.translatedExercises(c.All, language)
			}
			if err != nil {
				return err
			}
			return do(cmd, w, c, strings.TrimSpace(id))
		})
	cmd.Flags().StringVar(&language, "language", "", "zh-TW, ja or ko (default: English)")
	cmd.Flags().StringVar(&id, "ex", "", "the exercise: 04.3 (default: the current one)")
	return cmd
}

// translatedExercises returns the exercises in a language.
func (w workshop) translatedExercises(all []exercise.Exercise, language string) (some []exercise.Exercise, err error) {
	if err := w.checkLanguage(language); err != nil {
		return nil, err
	}
	said, err := translation.Catalogue(w.root, language, "exercises", nil)
	for _, e := range all {
		some = append(some, e.In(said))
	}
	return some, err
}

func reportSaved(saved string) {
	if saved != "" {
		fmt.Println("Your files of before are saved in", saved)
	}
}

// beginCommand continues an exercise, or puts its starter into work/.
func beginCommand() *cobra.Command {
	var kind, spec string
	cmd := courseCommand("exercise", "Begin an exercise, or go on with it: its story, its starter, its check",
		func(cmd *cobra.Command, _ workshop, c exercise.Course, id string) error {
			s, err := c.State()
			if err != nil {
				return err
			}
			if id == "" {
				next, ok := c.Next(s)
				if !ok {
					return errors.New("all exercises are done; EX=04.3 names one")
				}
				if id = next.ID; id != s.Exercise && s.Exercise != "" {
					fmt.Printf("%s\n\n", next.Sayf("%s is done. The next one:", s.Exercise))
				}
			}
			e, err := exercise.Find(c.All, id)
			if err != nil {
				return err
			}
			if e.ID == exercise.CapstoneID {
				e, err = plan(c, e, kind, spec)
			} else if kind+spec != "" {
				err = errors.New("KIND= and SPEC= are for EX=capstone")
			}
			if err != nil {
				return err
			}
			b, err := c.Begin(e, mayReplace)
			reportSaved(b.Saved)
			if err != nil {
				return err
			}
			e.PrintStory(os.Stdout)
			switch dir := filepath.Dir(e.Path()); {
			case b.Continued:
				fmt.Println(e.Sayf("You go on with %s: your files in %s stay as they are.", e.ID, dir))
				fmt.Println(e.Sayf("`make reset` takes the starter again."))
			case b.Kept:
				fmt.Println(e.Sayf("Your own solution of the exercise before is your starter. `make goto EX=%s` takes ours.", e.ID))
			default:
				fmt.Println(e.Sayf("The starter was put into %s.", dir))
			}
			return nil
		})
	cmd.Flags().StringVar(&kind, "kind", "", "for the capstone: the kind that the operator serves")
	cmd.Flags().StringVar(&spec, "spec", "", "for the capstone: a file with the specification")
	return cmd
}

// plan returns the capstone: with the specification of a file, with that in work/, or with one from answers in a
// terminal.
func plan(c exercise.Course, e exercise.Exercise, kind, file string) (exercise.Exercise, error) {
	if file != "" {
		s, err := specification.Read(file)
		if err == nil && kind != "" && kind != s.Kind {
			err = fmt.Errorf("KIND=%s, but the kind of %s is %s: leave out KIND=, or change the file", kind, file, s.Kind)
		}
		if err != nil {
			return e, err
		}
		return e.Plan(s)
	}
	s, err := c.Planned()
	switch {
	case err == nil && (kind == "" || kind == s.Kind), kind == "" && !errors.Is(err, exercise.ErrNoPlan):
		return e, err // the reader goes on
	case !term.IsTerminal(int(os.Stdin.Fd())):
		return e, fmt.Errorf("this is not a terminal, so the command cannot ask. Write a file such as work/greeting.yaml\n"+
			"and name it: make exercise EX=capstone SPEC=work/greeting.yaml\n\n%s", specification.Example)
	}
	if s, err = exercise.Ask(os.Stdin, os.Stdout, kind); err != nil {
		return e, err
	}
	return e.Plan(s)
}

// mayReplace asks in a terminal whether a starter may take the place of other files. They are saved in any case.
func mayReplace(e exercise.Exercise) bool {
	return !term.IsTerminal(int(os.Stdin.Fd())) || agreed(false, fmt.Sprintf(
		"%s has your files. Save them in work/.saved, and put the starter there?", filepath.Dir(e.Path())))
}

func gotoCommand() *cobra.Command {
	var yes bool
	cmd := courseCommand("goto", "Catch up: begin an exercise with everything before it solved",
		func(cmd *cobra.Command, _ workshop, c exercise.Course, id string) error {
			if id == "" {
				return errors.New("which one? make goto EX=04.3")
			}
			e, err := exercise.Find(c.All, id)
			if err != nil {
				return err
			}
			saved, err := c.Goto(e, func(e exercise.Exercise) bool { return yes || mayReplace(e) })
			reportSaved(saved)
			if err != nil {
				return err
			}
			e.PrintStory(os.Stdout)
			return nil
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask before files are saved and replaced")
	return cmd
}

func resetCommand() *cobra.Command {
	return courseCommand("reset", "Take the starter of an exercise again; your files are saved first",
		func(cmd *cobra.Command, w workshop, c exercise.Course, id string) error {
			e, err := w.meant(c, id)
			if err != nil {
				return err
			}
			if e.bug != nil {
				saved, err := c.Plant(cmd.Context(), *e.bug)
				reportSaved(saved)
				if err == nil {
					fmt.Println("work/bug has the bug again.")
				}
				return err
			}
			saved, err := c.Goto(e.Exercise, exercise.Always)
			reportSaved(saved)
			if err == nil {
				fmt.Printf("%s is the starter of %s again.\n", e.Path(), e.ID)
			}
			return err
		})
}

func checkCommand() *cobra.Command {
	var watch, verbose bool
	var address, name string
	cmd := courseCommand("check", "Judge your solution: the check of this exercise, and all before it",
		func(cmd *cobra.Command, w workshop, c exercise.Course, id string) error {
			attendee, err := room.Join(address, name, w.state)
			if err != nil {
				return err
			}
			fmt.Print(room.Unused(address))
			check := func() error { return w.check(cmd.Context(), c, id, verbose, attendee) }
			if !watch {
				return check()
			}
			return w.watch(cmd.Context(), c, check)
		})
	cmd.Flags().BoolVar(&watch, "watch", false, "run again whenever a file is saved")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show all of the evidence")
	cmd.Flags().StringVar(&address, "room", "", "where to send the verdict; nothing is sent without it")
	cmd.Flags().StringVar(&name, "name", "", "the name under which the room shows it")
	return cmd
}

// check examines the reader's files once, and remembers the result.
func (w workshop) check(ctx context.Context, c exercise.Course, id string, verbose bool, attendee room.Attendee) error {
	t, err := w.meant(c, id)
	if err != nil {
		return err
	}
	e, s := t.Exercise, t.state
	s.Take(e)
	files := c.Digest(e) // the reader may continue to type
	r, there := c.Last(files)
	if there = there && verbose; there {
		fmt.Printf("%s  %s\n%s\n", e.ID, e.Title,
			e.Sayf("This is what the last check said; your files have not changed since."))
	} else if r, err = w.examine(ctx, c, t, verbose); err != nil {
		return err
	}
	r.Print(os.Stdout, e, verbose, c.Place(e, r.Earlier)...)
	if err := c.Judged(e, s, files, r); err != nil {
		return err
	}
	if !there {
		attendee.Send(ctx, os.Stdout, e.ID, r.Passed(), firstFailed(r))
	}
	if !r.Passed() {
		return errNotPassed
	}
	if next := c.NextLine(e, s); next != "" {
		outcome.Wrap(os.Stdout, "", next)
	}
	return nil
}

// examine runs the check of an exercise, or of a bug.
func (w workshop) examine(ctx context.Context, c exercise.Course, t task, verbose bool) (exercise.Judgement, error) {
	p := checkProgress{out: os.Stdout, isTerminal: term.IsTerminal(int(os.Stdout.Fd()))}
	c.Judge.Waiting = p.waiting
	if !verbose {
		c.Known = func(own []exercise.Result) {
			t.PrintOwn(os.Stdout, own, false, c.Place(t.Exercise, own)...)
			p.verdict.Store(true)
			_ = c.ShowFailure(t.Exercise, own) // the end of the check keeps it, or reports the error
		}
	}
	defer p.end()
	if t.bug != nil {
		fmt.Println(t.Title)
		return c.CheckBug(ctx, *t.bug)
	}
	if t.Test != nil || t.Specification != "" { // some start an API server, and some generate from the reader's types
		if err := w.builder().Ensure(ctx, slices.Concat(tools.Local, tools.Generators)...); err != nil {
			return exercise.Judgement{}, err
		}
	}
	fmt.Printf("%s  %s\n", t.ID, t.Title)
	return c.Check(ctx, t.Exercise)
}

// watch checks now, and again whenever a file in work/ has changed and then stays unchanged for a moment.
func (w workshop) watch(ctx context.Context, c exercise.Course, check func() error) error {
	for {
		seen := c.Changed()
		if err := check(); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil && !errors.Is(err, errNotPassed) {
			fmt.Println(err)
		}
		fmt.Println("-- waiting for you to save (Ctrl-C ends)")
		for now := seen; now == seen || now != c.Changed(); {
			now = c.Changed()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
		}
	}
}

func hintCommand() *cobra.Command {
	return courseCommand("hint", "What fits your last failure, then the lines; else a nudge, an explanation, the line",
		func(_ *cobra.Command, w workshop, c exercise.Course, id string) error {
			e, err := w.meant(c, id)
			if err != nil {
				return err
			}
			s := e.state
			if s.Current != e.ID {
				s = exercise.State{} // the last check was of another exercise
			}
			s.Hints++
			text, after := c.ShownHint(e.Exercise, s)
			if _, isNone := c.NoHint(e.Exercise, s); e.bug != nil && !isNone {
				var last bool
				text, last = e.bug.Hint(s.Hints - 1)
				after = e.AfterHint(last)
			}
			exercise.PrintHint(os.Stdout, text, after)
			if s.Current == e.ID {
				return c.SetState(s)
			}
			return nil
		})
}

func solutionCommand() *cobra.Command {
	var yes bool
	cmd := courseCommand("solution", "Show what makes a solution of your files; nothing is written",
		func(cmd *cobra.Command, w workshop, c exercise.Course, id string) error {
			e, err := w.meant(c, id)
			if err != nil {
				return err
			}
			if e.bug != nil {
				if !agreed(yes, "Show the fault?") {
					return declined(yes)
				}
				fmt.Println(e.bug.Solution())
				return nil
			}
			if e.ID == exercise.CapstoneID {
				return errNoSolution
			}
			if !agreed(yes, "Show the solution of "+e.ID+"?") {
				return declined(yes)
			}
			mine, err := c.Written(e.Exercise)
			if err != nil {
				return err
			}
			ours, err := c.Files(e.Exercise, e.Solution)
			if err != nil {
				return err
			}
			for _, name := range exercise.Names(mine, ours) {
				path := filepath.Join("work", e.Chapter, name)
				fmt.Print(page.Diff(path, "the solution's "+name, strings.ReplaceAll(string(mine[name]), "\r\n", "\n"),
					string(ours[name])))
			}
			fmt.Println("Nothing was written: lines with + are for you to type.")
			return nil
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// agreed asks the reader in a terminal.
func agreed(yes bool, question string) bool {
	if yes || !term.IsTerminal(int(os.Stdin.Fd())) {
		return yes
	}
	fmt.Print(question, " [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line)))
}

func declined(yes bool) error {
	if !yes && !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("this is not a terminal, so the command cannot ask: make solution YES=1")
	}
	return nil
}

func progressCommand() *cobra.Command {
	return courseCommand("progress", "See which exercises are done, the next one, and how many minutes are left",
		func(_ *cobra.Command, _ workshop, c exercise.Course, _ string) error {
			s, err := c.State()
			if err == nil {
				c.Progress(os.Stdout, s)
			}
			return err
		})
}

func bugCommand() *cobra.Command {
	var number, level int
	cmd := courseCommand("bug", "Find a bug: an operator that a user complains about",
		func(cmd *cobra.Command, w workshop, c exercise.Course, _ string) error {
			s, err := c.State()
			if err != nil {
				return err
			}
			bugs, err := exercise.Bugs(w.root)
			if err != nil {
				return err
			}
			b, going := c.OpenBug(bugs, s)
			if going = going && number == 0 && level == 0; !going {
				if b, err = exercise.ChooseBug(bugs, s, number, level); err != nil {
					return err
				}
				saved, err := c.Plant(cmd.Context(), b)
				reportSaved(saved)
				if err != nil {
					return err
				}
			} else if err := c.GoOn(b.Exercise()); err != nil {
				return err
			}
			at := slices.IndexFunc(bugs, func(other exercise.Bug) bool { return other.Mutant == b.Mutant })
			b.Print(os.Stdout, at+1)
			if going {
				fmt.Println("You go on with this one. `make reset` plants it again, `make bug LEVEL=1` gives another one.")
			}
			return nil
		})
	cmd.Flags().IntVar(&number, "n", 0, "the number of the bug")
	cmd.Flags().IntVar(&level, "level", 0, "1 is easy, 3 is hard; by default, what you have reached")
	return cmd
}

func (w workshop) currentBug(s exercise.State) (exercise.Bug, error) {
	bugs, err := exercise.Bugs(w.root)
	if err != nil {
		return exercise.Bug{}, err
	}
	at := slices.IndexFunc(bugs, func(b exercise.Bug) bool { return b.Exercise().ID == s.Current })
	if at < 0 {
		return exercise.Bug{}, fmt.Errorf("%s is not there any more: `make bug` gives another one", s.Current)
	}
	return bugs[at], nil
}
