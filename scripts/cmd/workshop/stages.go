package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/strictyaml"
	"example.com/operator-workshop/scripts/internal/tools"
)

// A stage is a complete program on the way to a chapter's operator: the stage before it, plus one idea.
type stage struct {
	// Dir is the folder of the program, relative to the chapter.
	Dir string `json:"dir"`
	// Idea says in one sentence what the stage adds.
	Idea string `json:"idea"`
	// Demands is the check of the lab that the stage before fails and this stage passes. The first stages have none:
	// there is nothing to judge yet.
	Demands string `json:"demands,omitempty"`
	// Passes are the checks that this stage passes, of all checks that any stage demands or lists here. They are
	// compared where there is a list; [] is a list, too.
	Passes []string `json:"passes,omitempty"`
}

// stagesOf reads the stages of a chapter.
func stagesOf(folder string) ([]stage, error) {
	var list struct{ Stages []stage }
	err := strictyaml.Read(filepath.Join(folder, "stages.yaml"), &list)
	return list.Stages, err
}

// stagesCommand runs the checks that stages demand, on all stages.
func stagesCommand() *cobra.Command {
	var ch, only string
	var fast, list bool
	cmd := newCommand("stages", "See that each stage of a chapter is demanded by a check of the lab", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			dirs, err := chapter.Select(w.root, ch)
			if err != nil {
				return err
			}
			wanted, err := regexp.Compile(only)
			if err != nil {
				return fmt.Errorf("--run: %w", err)
			}
			dirs = w.withStages(dirs)
			if !list {
				return w.checkStages(cmd.Context(), dirs, wanted, fast)
			}
			for _, dir := range dirs {
				stages, err := stagesOf(filepath.Join(w.root, dir))
				if err != nil {
					return err
				}
				printStages(cmd.OutOrStdout(), stages)
			}
			return nil
		})
	cmd.Flags().StringVar(&ch, "ch", "", "only this chapter")
	cmd.Flags().StringVar(&only, "run", "", "only stages whose folder matches this regular expression")
	cmd.Flags().BoolVar(&fast, "fast", false, "only the check that each stage demands, on it and on the one before")
	cmd.Flags().BoolVar(&list, "list", false, "print what stages.yaml says, without a run")
	return cmd
}

// withStages returns the chapters that have stages.
func (w workshop) withStages(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		_, err := os.Stat(filepath.Join(w.root, dir, "stages.yaml"))
		return err != nil
	})
}

// printStages prints how many checks each stage passes according to stages.yaml, and which checks it has gained and
// lost.
func printStages(w io.Writer, stages []stage) {
	fmt.Fprintf(w, "%-18s %-6s %s\n", "STAGE", "PASSES", "GAINED (LOST)")
	var before []string
	for _, s := range stages {
		if s.Passes == nil { // not judged
			continue
		}
		words := without(s.Passes, before)
		if lost := without(before, s.Passes); len(lost) > 0 {
			words = append(words, "("+strings.Join(lost, " ")+")")
		}
		line := fmt.Sprintf("%-18s %-6d %s", filepath.Base(s.Dir), len(s.Passes), strings.Join(words, " "))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		before = s.Passes
	}
}

// without returns the checks that are not among others, by their short names.
func without(checks, others []string) (names []string) {
	for _, c := range checks {
		if !slices.Contains(others, c) {
			names = append(names, c[strings.Index(c, "/")+1:])
		}
	}
	return names
}

// checkStages runs checks on the wanted stages of chapters and on the stages before them, prints a line for each, and
// fails when a stage differs from stages.yaml.
func (w workshop) checkStages(ctx context.Context, dirs []string, wanted *regexp.Regexp, fast bool) error {
	err := errors.Join(w.builder().Ensure(ctx, tools.Local...),
		w.builder().Program(ctx, filepath.Join(w.root, labModule), "./cmd/lab", "lab"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		err = errors.Join(err, w.checkChapter(ctx, dir, wanted, fast))
	}
	return err
}

func (w workshop) checkChapter(ctx context.Context, dir string, wanted *regexp.Regexp, fast bool) error {
	stages, err := stagesOf(filepath.Join(w.root, dir))
	if err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "workshop-stages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	needed := neededStages(stages, wanted)
	if len(needed) == 0 {
		return fmt.Errorf("no stage of %s matches %q", dir, wanted)
	}
	judge := exercise.Judge{Root: w.root, Bin: w.bin(), Env: w.chapterEnv(), Waiting: waiting, Fixtures: stagesAtOnce}
	if err := w.buildStages(ctx, judge, dir, stages, needed, programs); err != nil {
		return err
	}
	if fast { // starting control planes takes longer than these few checks
		if _, err := w.keptPlane(ctx); err != nil {
			return err
		}
		judge.Fixtures = 1
	}
	all, err := runStages(ctx, os.Stdout, judge, stages, needed, programs, fast)
	if err != nil {
		return err
	}
	return judgeStages(os.Stdout, stages, all, wanted)
}

// stagesAtOnce is how many stages are examined at once, each with its own control plane: a failing check spends its
// time waiting.
const stagesAtOnce = 3

// runStages runs checks on the stages, and prints each verdict as soon as it is there.
func runStages(ctx context.Context, out io.Writer, judge exercise.Judge, stages []stage, needed []int, programs string,
	fast bool) ([]verdicts, error) {
	var jobs []exercise.Job
	for _, n := range needed {
		name := filepath.Base(stages[n].Dir)
		jobs = append(jobs, exercise.Job{Name: name, Program: filepath.Join(programs, name),
			Checks: checksFor(stages, n, fast)})
	}
	fmt.Fprintf(out, "  %d stages are examined\n", len(jobs))
	found, err := judge.Lab(ctx, jobs, func(job string, v exercise.Verdict) {
		fmt.Fprintf(out, "  %-18s %-8s %s (%.1f s)\n", job, v.Verdict, v.Check, v.Seconds)
	})
	all := make([]verdicts, len(stages))
	for at, n := range needed {
		all[n] = verdicts{}
		for _, v := range found[jobs[at].Name] {
			all[n][v.Check] = v
		}
	}
	return all, err
}

// neededStages returns the wanted stages and the stages before them.
func neededStages(stages []stage, wanted *regexp.Regexp) (needed []int) {
	for n, s := range stages {
		next := n+1 < len(stages) && stages[n+1].Demands != "" && wanted.MatchString(stages[n+1].Dir)
		if next || s.Passes != nil && wanted.MatchString(s.Dir) {
			needed = append(needed, n)
		}
	}
	return needed
}

// buildStages compiles programs into a folder.
func (w workshop) buildStages(ctx context.Context, judge exercise.Judge, dir string, stages []stage, needed []int,
	into string) error {
	defer judge.Wait("compiling the stages")()
	args := []string{"build", "-buildvcs=false", "-ldflags=-w", "-o", into + string(filepath.Separator)}
	for _, n := range needed {
		args = append(args, "./"+stages[n].Dir)
	}
	cmd := w.program(ctx, "go", args...)
	cmd.Dir = filepath.Join(w.root, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the stages of %s: %w\n%s", dir, err, out)
	}
	return nil
}

// judgeStages prints a line for each wanted stage, and returns what differs from stages.yaml.
func judgeStages(out io.Writer, stages []stage, all []verdicts, wanted *regexp.Regexp) (err error) {
	fmt.Fprintf(out, "%-24s %-34s %-8s %-8s %s\n", "STAGE", "DEMANDED BY", "BEFORE", "NOW", "PASSES")
	for n, s := range stages {
		if !wanted.MatchString(s.Dir) || s.Passes == nil {
			continue
		}
		var before verdicts
		if n > 0 {
			before = all[n-1]
		}
		now, passed := all[n], 0
		for _, v := range now {
			if v.Verdict == "passed" {
				passed++
			}
		}
		fmt.Fprintf(out, "%-24s %-34s %-8s %-8s %d of %d\n", s.Dir, cmp.Or(s.Demands, "–"),
			cmp.Or(before[s.Demands].Verdict, "–"), cmp.Or(now[s.Demands].Verdict, "–"), passed, len(now))
		if why, _, _ := strings.Cut(before[s.Demands].Reason, "\n"); why != "" {
			why = filepath.Base(stages[n-1].Dir) + ": " + why
			if short := []rune(why); len(short) > 98 {
				why = string(short[:97]) + "…"
			}
			fmt.Fprintln(out, "  "+why)
		}
		err = errors.Join(err, disagreement(s, before, now))
	}
	return err
}

// checksFor returns the checks to run on stage n: all that any stage demands or lists. With fast, only the checks that
// this stage and the next stage demand.
func checksFor(stages []stage, n int, fast bool) (checks []string) {
	for at, s := range stages {
		if s.Demands != "" && (!fast || at == n || at == n+1) {
			checks = append(checks, s.Demands)
		}
		if !fast {
			checks = append(checks, s.Passes...)
		}
	}
	slices.Sort(checks)
	return slices.Compact(checks)
}

// disagreement describes how the checks that were run differ from stages.yaml.
func disagreement(s stage, before, now verdicts) error {
	if v := now[s.Demands]; s.Demands != "" && v.Verdict != "passed" {
		return fmt.Errorf("%s must pass %s: %s: %s", s.Dir, s.Demands, v.Verdict, v.Reason)
	}
	if s.Demands != "" && before[s.Demands].Verdict == "passed" {
		return fmt.Errorf("%s demands %s, but the stage before passes it: no check shows what the stage adds",
			s.Dir, s.Demands)
	}
	var wrong []string
	for check, v := range now {
		if listed := slices.Contains(s.Passes, check); listed != (v.Verdict == "passed") {
			wrong = append(wrong, check+": "+string(v.Verdict))
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return fmt.Errorf("%s is not as stages.yaml says: %s", s.Dir, strings.Join(wrong, ", "))
	}
	return nil
}

// verdicts has the verdicts on a program, by check.
type verdicts map[string]exercise.Verdict
