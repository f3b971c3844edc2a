package exercise

import (
	"cmp"
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

// place returns the line of the card that names the first place. The differences beside a guess without a statement may have
// nothing to do with it.
func (c Cause) place() (lines []CardLine) {
	isVague := c.Wrong.Guess && !c.Same && c.Wrong.Source+c.Wrong.Statement+c.Wrong.Shape == "" && len(ownOf(c.Differs)) > 1
	if some := ownOf(shown(c.Differs)); len(some) > 0 && !isVague {
		lines = append(lines, CardLine{translation.Mark("Look at"), some[0].Place() + ": " + beginningOf(some[0].Statement)})
	}
	return lines
}

// beginningOf returns the beginning of a long statement.
func beginningOf(statement string) string {
	const most = 160
	if all := []rune(statement); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return statement
}

// Place returns the line of the card that names the place of a failure, if one is known.
func (c Course) Place(e Exercise, own []Result) []CardLine {
	return c.Cause(e, Judgement{Own: own}.Failure()).place()
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
	byStatement, places := e.shownBy(ofCard(failure), all, mine, solution)
	if len(all) > mostDifferences && len(ownOf(all)) > mostDifferences/2 {
		all = nil
		for n := range places { // what the solution has is not in its place
			places[n].Kind, places[n].Other = difference.Shown, ""
		}
	}
	about := kindsAndTypes(failure)
	slices.SortStableFunc(all, func(a, b difference.Difference) int {
		return cmp.Compare(len(common(about, b.Statement)), len(common(about, a.Statement)))
	})
	known := e.Recognise(ofFirst(failure), source(mine))
	for _, w := range e.Recognise(failure, source(mine)) {
		if !slices.ContainsFunc(known, func(k Wrong) bool { return k.Name == w.Name }) {
			known = append(known, w)
		}
	}
	for _, w := range known {
		if same, _ := e.compare(w, all, solution); same || len(all) == 0 && !w.Guess && byStatement.Shape == "" {
			return Cause{w, w.shows(all, about), true}
		}
	}
	if byStatement.Name != "" {
		return Cause{Wrong: byStatement, Differs: places}
	}
	for _, w := range known {
		if _, refuted := e.compare(w, all, solution); !refuted {
			return Cause{Wrong: w, Differs: w.shows(all, about)}
		}
	}
	return Cause{Differs: all}
}

// ofFirst returns the part of a failure that is about the check that failed first: the card explains this one.
func ofFirst(failure string) string {
	next := regexp.MustCompile(`\n[\w-]+/[\w-]+: ` + string(outcome.Failed) + `\n`).FindStringIndex(failure)
	if next == nil {
		return failure
	}
	return failure[:next[0]]
}

// ofCard returns the part of a failure that the card shows: the first failure of the first check, and what followed it. A
// statement that explains a later one is not the cause of the first.
func ofCard(failure string) string {
	var lines []string
	expected, isLater := 0, false
	for line := range strings.SplitSeq(ofFirst(failure), "\n") {
		if strings.HasPrefix(line, "expected ") {
			expected++
		}
		isLater = expected > 1 && (isLater || strings.HasPrefix(line, "expected ")) && !strings.HasPrefix(line, "After that, ")
		if !isLater {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// kindsAndTypes returns the names with a capital letter in a text: kinds, types, functions, and what a program has for them.
func kindsAndTypes(text string) []string {
	return regexp.MustCompile(`\b[A-Z]\w{3,}`).FindAllString(text, -1)
}

// common returns the names that are in a statement, too. A statement that has names of the failure is likely to cause it.
func common(names []string, statement string) []string {
	return slices.DeleteFunc(kindsAndTypes(statement), func(name string) bool { return !slices.Contains(names, name) })
}

// shows returns the differences that show a wrong answer: those with its source, or of many those with names of the failure.
// When there are none, it returns all.
func (w Wrong) shows(all []difference.Difference, about []string) []difference.Difference {
	has := regexp.MustCompile(w.Source)
	isOther := func(d difference.Difference) bool { return !has.MatchString(d.Statement) }
	if w.Source == "" {
		if len(ownOf(all)) == 1 {
			return all
		}
		isOther = func(d difference.Difference) bool { return len(common(about, d.Statement)) == 0 }
	}
	if w.Kind != "" {
		isOther = func(d difference.Difference) bool { return d.Kind != w.Kind }
	}
	if some := slices.DeleteFunc(slices.Clone(all), isOther); len(some) > 0 {
		return some
	}
	return all
}

// shownBy returns the mistake that a statement or a function of the reader shows, and the statements that show it. The program
// has more of them than the solution.
func (e Exercise) shownBy(failure string, all []difference.Difference, mine, solution map[string][]byte) (
	w Wrong, places []difference.Difference) {
	own, others, text := difference.Statements(mine), difference.Statements(solution), source(mine)
	for _, m := range inLanguage(e.said, mistakes) {
		if m.Statement+m.Shape == "" || !regexp.MustCompile(m.Says).MatchString(failure) ||
			!regexp.MustCompile(m.Source).MatchString(text) || m.Lacks != "" && regexp.MustCompile(m.Lacks).MatchString(text) {
			continue
		}
		shows := regexp.MustCompile(m.Statement)
		isOther := func(statement string) bool { return !shows.MatchString(statement) }
		if m.Shape != "" {
			if places = shaped(m.Shape, mine, all); len(places) > 0 && len(shaped(m.Shape, solution, nil)) == 0 {
				return m, places
			}
			continue
		}
		if len(slices.DeleteFunc(slices.Clone(own), isOther)) <= len(slices.DeleteFunc(slices.Clone(others), isOther)) {
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
// A difference of the kind that shows the mistake does not refute it.
func (e Exercise) compare(w Wrong, all []difference.Difference, solution map[string][]byte) (same, refuted bool) {
	isOwn := slices.ContainsFunc(e.Wrong, func(a Wrong) bool { return a.Name == w.Name && a.Mistake == "" })
	isShown := w.Kind != "" && slices.ContainsFunc(all, func(d difference.Difference) bool { return d.Kind == w.Kind })
	refuted = len(all) > 0 && (isOwn || w.Guess) && !isShown
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
		isOther := func(d difference.Difference) bool { return !meets(d) }
		if len(of) == len(all) && len(ownOf(of)) == len(ownOf(all)) && !slices.ContainsFunc(all, isOther) {
			return true, false
		}
		if len(of) == 0 || slices.ContainsFunc(all, meets) {
			refuted = false
		}
	}
	return false, refuted
}

// shown returns the differences that a hint shows: those that end a loop early, or else first those that end a function
// early, then the others for which the solution has nothing. A program that lacks much is not finished: what it lacks is the
// exercise.
func shown(all []difference.Difference) []difference.Difference {
	const most = 4
	all = slices.DeleteFunc(slices.Clone(all), func(d difference.Difference) bool { // three calls do what the loop does
		return d.Line == 0 && strings.HasPrefix(d.Other, "range ")
	})
	own := ownOf(all)
	if lacks := len(all) - len(own); lacks <= most {
		own = all
	}
	endsNoLoop := func(d difference.Difference) bool { return d.Kind != difference.EndsLoop }
	if ends := slices.DeleteFunc(slices.Clone(own), endsNoLoop); len(ends) > 0 {
		return ends
	}
	own = slices.Clone(own)
	rank := func(d difference.Difference) int {
		switch {
		case d.Line == 0:
			return 3
		case d.Kind != "" && d.Kind != difference.Unread:
			return 0
		case d.Other == "":
			return 1
		}
		return 2
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
		case d.Kind == difference.EndsLoop:
			lines = append(lines, e.Sayf("It ends the loop: what comes later in the list is not done."))
		case d.Kind == difference.Unread:
			lines = append(lines, e.Sayf("Nothing in your program uses what it reads here."))
		case d.Kind == difference.Shown:
		case d.Kind == difference.Drops:
			lines = append(lines, e.Sayf("The solution returns the error: then the work is tried again."))
		case d.Mine == "" && d.Other != "":
			lines = append(lines, e.Sayf("The solution also has this, and your program does not:"), code(d.Other))
		case d.Other == "" && d.Mine != d.Statement:
			lines = append(lines, e.Sayf("The solution does not have this part:"), code(d.Mine))
		case d.Other != "" && d.Mine != d.Statement:
			lines = append(lines, e.Sayf("The solution does not have this part:"), code(d.Mine), e.Sayf("It has this:"), code(d.Other))
		case d.Other != "":
			lines = append(lines, e.Sayf("The solution has this in its place:"), code(d.Other))
		case d.Kind == difference.Ends:
			lines = append(lines, e.Sayf("The solution has no such condition. When it is true, your function returns and does nothing more."))
		default:
			lines = append(lines, e.Sayf("The solution has no such statement."))
		}
	}
	return strings.Join(lines, "\n")
}

// fact returns what a name means in the differences that a hint shows: best a name that only one of the two programs has
// there, otherwise a name of the same statement in both.
func (e Exercise) fact(all []difference.Difference) string {
	all = shown(all)
	for _, isMeant := range []func(*regexp.Regexp, difference.Difference) bool{
		func(name *regexp.Regexp, d difference.Difference) bool {
			return name.MatchString(d.Mine) != name.MatchString(d.Other)
		},
		func(name *regexp.Regexp, d difference.Difference) bool { return name.MatchString(d.Statement) },
	} {
		for _, d := range all {
			for _, f := range facts {
				if isMeant(regexp.MustCompile(`\b(?:`+f.Name+`)\b`), d) {
					return e.said.Say(reflowed(f.Says))
				}
			}
		}
	}
	return ""
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
