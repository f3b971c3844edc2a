package exercise

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/output"
)

// Stages returns the exercises of a chapter that lead to its stages. The first check of such an exercise demands the
// stage: the stage before fails the check.
func Stages(all []Exercise, chapter string) (some []Exercise) {
	for _, e := range all {
		if e.Chapter == chapter && len(e.Lab) > 0 && strings.HasPrefix(e.Solution, "stages/") {
			some = append(some, e)
		}
	}
	return some
}

// A Pair is an exercise with the results of its starter and of its solution.
type Pair struct {
	Exercise          Exercise
	Starter, Solution Judgement
	// Passed is how many checks the solution passes, Of how many were run on it.
	Passed, Of int
}

// Prove proves the pairs of exercises, as Verify does: the starter fails the first check, the solution passes it. With
// first, no other check is run. It returns an error for each violation.
func (c Course) Prove(ctx context.Context, some []Exercise, first bool, print func(format string, args ...any)) (
	pairs []Pair, err error) {
	var all []*attempt
	for _, e := range some {
		pair, err := c.pair(e)
		if err != nil {
			return nil, err
		}
		for _, t := range pair {
			if first {
				t.own, t.earlier, t.lost = t.own[:1], nil, nil
			}
		}
		all = append(all, pair...)
	}
	if err := c.try(ctx, all, print); err != nil {
		return nil, err
	}
	for n, e := range some {
		starter, solution := all[2*n], all[2*n+1]
		p := Pair{Exercise: e, Starter: starter.report, Solution: solution.report}
		for _, v := range slices.Concat(p.Solution.Own, p.Solution.Earlier, solution.losses) {
			if p.Of++; v.Passed() {
				p.Passed++
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, c.judgeAll(all, &Counts{})
}

// verdictColumns is the width of a verdict beside its margin. Pages and slides show these lines, so they are the same in
// each terminal.
const verdictColumns = 78

// PrintPairs writes a line for each stage, and below it why the stage before failed the check.
func PrintPairs(w io.Writer, pairs []Pair) {
	fmt.Fprintf(w, "%-24s %-34s %-8s %-8s %s\n", "STAGE", "DEMANDED BY", "BEFORE", "NOW", "PASSES")
	for _, p := range pairs {
		before, now := p.Starter.on(p.Exercise.Lab[0]), p.Solution.on(p.Exercise.Lab[0])
		fmt.Fprintf(w, "%-24s %-34s %-8s %-8s %d of %d\n", p.Exercise.Solution, p.Exercise.Lab[0], before.Verdict,
			now.Verdict, p.Passed, p.Of)
		if why, _, _ := strings.Cut(before.What, "\n"); why != "" {
			why = output.Wrap(output.Line(filepath.Base(p.Exercise.Starter)+": "+why), verdictColumns)
			fmt.Fprintln(w, "  "+strings.ReplaceAll(why, "\n", "\n  "))
		}
	}
}

// on returns the verdict on a check; "–" means that there is none, because the program did not compile.
func (r Judgement) on(check string) Result {
	for _, v := range r.Own {
		if v.ID == check {
			return v
		}
	}
	return Result{Verdict: "–"}
}

// PrintStages writes a line for each stage of a chapter: how many checks the stage passes, and which of them it has gained
// and lost. It counts the checks that demand a stage, and those that a list has as `also`.
func PrintStages(w io.Writer, all []Exercise, chapter string) {
	var shown, before []string
	for _, e := range Stages(all, chapter) {
		shown = append(append(shown, e.Lab[0]), e.Also...)
	}
	fmt.Fprintf(w, "%-18s %-6s %s\n", "STAGE", "PASSES", "GAINED (LOST)")
	for _, e := range Stages(all, chapter) {
		now := slices.DeleteFunc(passed(all, e), func(id string) bool {
			return !strings.HasPrefix(id, "behaviour/") || !slices.Contains(shown, id)
		})
		slices.Sort(now)
		words := without(now, before)
		if lost := without(before, now); len(lost) > 0 {
			words = append(words, "("+strings.Join(lost, " ")+")")
		}
		line := fmt.Sprintf("%-18s %-6d %s", filepath.Base(e.Solution), len(now), strings.Join(words, " "))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		before = now
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
