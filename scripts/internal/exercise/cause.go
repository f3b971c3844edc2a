package exercise

import (
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/difference"
	"example.com/operator-workshop/scripts/internal/translation"
)

// A Cause is what may explain a failure: a known wrong answer, or the places at which the reader's program differs from the
// solution, or both.
type Cause struct {
	Wrong   Wrong
	Differs []difference.Difference
	// Same means that the program has the differences of the known wrong answer, and no others.
	Same bool
}

// place returns the line of the card that names the first place.
func (c Cause) place() (lines []CardLine) {
	if some := c.places(); len(some) > 0 {
		lines = append(lines, CardLine{translation.Mark("Look at"), some[0].Place() + ": " + beginningOf(some[0].Statement)})
	}
	return lines
}

// places returns the statements of the reader that may explain a failure: first the one that the known wrong answer has.
func (c Cause) places() []difference.Difference {
	some := ownOf(shown(c.Differs))
	if c.Wrong.Source == "" {
		return some
	}
	has := regexp.MustCompile(c.Wrong.Source)
	at := slices.IndexFunc(some, func(d difference.Difference) bool { return has.MatchString(d.Statement) })
	if at > 0 {
		some[0], some[at] = some[at], some[0]
	}
	return some
}

// beginningOf returns the beginning of a long statement.
func beginningOf(statement string) string {
	const most = 80
	if all := []rune(statement); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return statement
}

// Place returns the line of the card that names the place of a failure, if one is known.
func (c Course) Place(e Exercise, own []Result) []CardLine {
	return c.Cause(e, Report{Own: own}.Failure()).place()
}

// Cause returns what may explain a failure of the reader's files. An unchanged starter has no cause.
func (c Course) Cause(e Exercise, failure string) Cause {
	mine, err := c.Written(e)
	if err != nil || failure == "" {
		return Cause{}
	}
	starter, err := c.Files(e, e.Starter)
	if err == nil && digest(&attempt{e: e, files: mine}) == digest(&attempt{e: e, files: starter}) {
		return Cause{}
	}
	if first, err := c.First(e); err == nil {
		starter = first
	}
	var solution map[string][]byte
	if e.Solution != "" && !strings.HasPrefix(failure, errCompile.Error()) {
		if solution, err = c.Files(e, e.Solution); err != nil {
			return Cause{}
		}
	}
	return e.cause(failure, mine, solution, starter)
}

// mostDifferences is how many differences a program may have that is nearly the solution. In another program, no
// difference explains a failure.
const mostDifferences = 12

func (e Exercise) cause(failure string, mine, solution, starter map[string][]byte) Cause {
	var all []difference.Difference
	if len(solution) > 0 {
		all = difference.Of(mine, solution, starter)
	}
	byStatement, places := e.shownBy(failure, all, difference.Statements(mine), difference.Statements(solution))
	if len(all) > mostDifferences && len(ownOf(all)) > mostDifferences/2 {
		all = nil
	}
	known := e.Recognise(failure, source(mine))
	for _, w := range known {
		if same, _ := e.compare(w, all, solution); same || len(all) == 0 && !w.Guess {
			return Cause{w, all, true}
		}
	}
	if byStatement.Name != "" {
		return Cause{Wrong: byStatement, Differs: places}
	}
	for _, w := range known {
		if _, refuted := e.compare(w, all, solution); !refuted {
			return Cause{Wrong: w, Differs: all}
		}
	}
	return Cause{Differs: all}
}

// shownBy returns the mistake that a statement of the reader shows, and the statements that show it. The program has more of
// them than the solution.
func (e Exercise) shownBy(failure string, all []difference.Difference, mine, solution []string) (w Wrong, places []difference.Difference) {
	for _, m := range inLanguage(e.said, mistakes) {
		if m.Statement == "" || !regexp.MustCompile(m.Says).MatchString(failure) {
			continue
		}
		shows := regexp.MustCompile(m.Statement)
		isOther := func(statement string) bool { return !shows.MatchString(statement) }
		if len(slices.DeleteFunc(slices.Clone(mine), isOther)) <= len(slices.DeleteFunc(slices.Clone(solution), isOther)) {
			continue
		}
		for _, d := range all {
			if shows.MatchString(d.Statement) {
				w, places = m, append(places, d)
			}
		}
		if w.Name != "" {
			return w, places
		}
	}
	return Wrong{}, nil
}

// compare compares a reader's differences from the solution with those of a known wrong answer: they are the same, or they
// refute it, as they are about other statements. Only a guess can be refuted: the failure has the words of every other mistake.
func (e Exercise) compare(w Wrong, all []difference.Difference, solution map[string][]byte) (same, refuted bool) {
	isOwn := slices.ContainsFunc(e.Wrong, func(a Wrong) bool { return a.Name == w.Name && a.Mistake == "" })
	refuted = len(all) > 0 && (isOwn || w.Guess)
	for _, a := range e.Wrong {
		if a.Mistake != w.Name && (a.Name != w.Name || a.Mistake != "") {
			continue
		}
		files, err := a.apply(e, solution)
		if err != nil {
			return false, false
		}
		of := difference.Of(files, solution, nil)
		meets := func(d difference.Difference) bool { return slices.ContainsFunc(of, d.Meets) }
		if len(of) == len(all) && !slices.ContainsFunc(all, func(d difference.Difference) bool { return !meets(d) }) {
			return true, false
		}
		if len(of) == 0 || slices.ContainsFunc(all, meets) {
			refuted = false
		}
	}
	return false, refuted
}

// shown returns the differences that a hint shows: first those that end the work early, then the others for which the
// solution has nothing. A program that lacks much is not finished: what it lacks is the exercise.
func shown(all []difference.Difference) []difference.Difference {
	const most = 4
	own := ownOf(all)
	if lacks := len(all) - len(own); lacks <= most {
		own = all
	}
	own = slices.Clone(own)
	rank := func(d difference.Difference) int {
		switch {
		case d.Line == 0:
			return 3
		case d.Other != "" && d.Kind != difference.Before:
			return 2
		case d.Kind == "":
			return 1
		}
		return 0
	}
	slices.SortStableFunc(own, func(a, b difference.Difference) int { return rank(a) - rank(b) })
	own = slices.CompactFunc(own, func(a, b difference.Difference) bool { return a.Line > 0 && a.Line == b.Line })
	return own[:min(most, len(own))]
}

// ownOf returns the differences that are statements of the reader.
func ownOf(all []difference.Difference) (own []difference.Difference) {
	for _, d := range all {
		if d.Line > 0 {
			own = append(own, d)
		}
	}
	return own
}

// sayDifferences says where the reader's program differs from the solution.
func (e Exercise) sayDifferences(all []difference.Difference) string {
	if all = shown(all); len(all) == 0 {
		return ""
	}
	var lines []string
	if all[0].Line > 0 {
		lines = append(lines, e.Sayf("Your program and the solution differ here:"))
	}
	for _, d := range all {
		if d.Line > 0 {
			lines = append(lines, code(d.Place()+": "+d.Statement))
		}
		switch {
		case d.Line == 0:
			lines = append(lines, e.Sayf("The solution also has this, and your program does not:"), code(d.Other))
		case d.Kind == difference.Before:
			lines = append(lines, e.Sayf("The solution does this before it:"), code(d.Other))
		case d.Kind == difference.Drops:
			lines = append(lines, e.Sayf("The solution returns the error: then the work is tried again."))
		case d.Other == "" && d.Mine != d.Statement:
			lines = append(lines, e.Sayf("The solution does not have this part:"), code(d.Mine))
		case d.Other != "" && d.Mine != d.Statement:
			lines = append(lines, e.Sayf("The solution does not have this part:"), code(d.Mine), e.Sayf("It has this:"), code(d.Other))
		case d.Other != "":
			lines = append(lines, e.Sayf("The solution has this in its place:"), code(d.Other))
		case d.Kind == difference.Ends:
			lines = append(lines, e.Sayf("The solution has no such condition: where it is true, the rest of the function is not done."))
		default:
			lines = append(lines, e.Sayf("The solution has no such statement."))
		}
	}
	return strings.Join(lines, "\n")
}

// code returns a statement as indented lines that fit a terminal.
func code(text string) string {
	const indent, most = "    ", outcome.Columns - 4
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len([]rune(lines[last]+" "+word)) <= most {
			lines[last] += " " + word
		} else {
			lines = append(lines, indent+word)
		}
	}
	return strings.Join(lines, "\n")
}
