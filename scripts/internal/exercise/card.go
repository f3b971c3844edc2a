package exercise

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/internal/translation"
)

// A Card is the part of a verdict that a reader needs first: the one failure that explains the others, or the proof.
// The terminal and the window show the same card.
type Card struct {
	Passed bool      `json:"passed"`
	Time   time.Time `json:"time"`
	// Check is the check, with its title; it is empty when the program does not compile.
	Check string     `json:"check,omitempty"`
	Lines []CardLine `json:"lines"`
	// More is how many more checks failed.
	More int `json:"more,omitempty"`
}

// A CardLine is a line of a card.
type CardLine struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// failed returns the failed verdicts in the order of the experiments: a later failure often follows from the first.
func failed(verdicts []Result) []Result {
	return slices.DeleteFunc(slices.Clone(verdicts), Result.Passed)
}

// sentences returns the expectation and the outcome. The lab writes both into the first line of a reason; the
// reason of a test is the output of the test.
func sentences(v Result) (expected, happened string) {
	const mostOfTest = 4
	lines := strings.Split(strings.TrimSpace(v.What), "\n")
	expected, happened, ok := strings.Cut(lines[0], "; but ")
	if !ok {
		return v.Title, ended(strings.Join(lines[:min(len(lines), mostOfTest)], "\n"))
	}
	expected = strings.TrimPrefix(strings.TrimPrefix(expected, "expected "), "that ")
	if request := requestOf(lines); request != "" {
		return expected, ended(happened) + "\n" + request
	}
	return expected, ended(strings.Join(append([]string{happened}, printedOf(lines)...), "\n"))
}

// failureLines returns the act of a user, the expectation, and the outcome.
func failureLines(v Result) (lines []CardLine) {
	if v.Did != "" {
		lines = append(lines, CardLine{translation.Mark("Done"), v.Did})
	}
	expected, happened := sentences(v)
	happened = strings.TrimSpace(happened + "\n" + v.Reaction)
	if text := logged(v, happened); text != "" {
		happened += "\n" + text
	}
	lines = append(lines, CardLine{translation.Mark("Expected"), expected}, CardLine{translation.Mark("Happened"), happened})
	for _, word := range slices.Sorted(maps.Keys(effects)) {
		if regexp.MustCompile(`\b20[01] ` + word + `\b`).MatchString(happened) {
			lines = append(lines, CardLine{translation.Mark("Words"), effects[word]})
		}
	}
	return lines
}

// effects explains the word for the effect of a request, which is behind its code.
var effects = map[string]string{
	"same":  translation.Mark("same: the API server stored no change"),
	"moved": translation.Mark("moved: the API server stored a change"),
}

// ofBefore says why a card is not about the exercise's own check.
var ofBefore = CardLine{translation.Mark("Earlier"),
	translation.Mark("The exercise's own check passed. This check is of an exercise before, and what you wrote since fails it.")}

// timeIsOver matches the reason of a check that waited until its time was over, and ofBusy is ofBefore for it: on a busy
// machine, a right program may fail in this way.
var (
	timeIsOver = regexp.MustCompile(`; but not (?:within|after) |the time of the check is over`)
	ofBusy     = CardLine{translation.Mark("Earlier"),
		translation.Mark("The exercise's own check passed. The time of a check of an exercise before was over. On a busy machine, run make check again.")}
)

// ofEarlier returns the line about the failure of an earlier check.
func ofEarlier(v Result) CardLine {
	if first, _, _ := strings.Cut(v.What, "\n"); timeIsOver.MatchString(first) {
		return ofBusy
	}
	return ofBefore
}

// checksBefore says that the earlier checks passed.
var checksBefore = translation.Mark("the %d checks before it passed, too")

// Card returns the card of a report; next is the exercise after it, if there is one, and last the card before it.
func (r Judgement) Card(next string, last *Card) Card {
	if r.Compile != nil {
		return Card{Lines: []CardLine{{translation.Mark("Happened"), r.Compile.Error()}}}
	}
	if bad := failed(slices.Concat(r.Own, r.Earlier)); len(bad) > 0 {
		lines := failureLines(bad[0])
		if len(failed(r.Own)) == 0 {
			lines = append(lines, ofEarlier(bad[0]))
		}
		return Card{Check: bad[0].ID + ": " + bad[0].Title, Lines: lines, More: len(bad) - 1}
	}
	c := Card{Passed: r.Passed()}
	for _, v := range slices.Concat(r.Own, r.Earlier) {
		if last != nil && !last.Passed && last.Check == v.ID+": "+v.Title {
			c.Lines = append(c.Lines, CardLine{translation.Mark("Fixed"), v.Title})
		} else if slices.ContainsFunc(r.Own, func(own Result) bool { return own.ID == v.ID }) {
			c.Lines = append(c.Lines, CardLine{translation.Mark("Proved"), v.Title})
		}
	}
	if len(r.Earlier) > 0 {
		c.Lines = append(c.Lines, CardLine{translation.Mark("Proved"), fmt.Sprintf(checksBefore, len(r.Earlier))})
	}
	for _, line := range r.Loop {
		c.Lines = append(c.Lines, CardLine{translation.Mark("Loop"), clock.ReplaceAllString(line, "")})
	}
	if next != "" {
		c.Lines = append(c.Lines, CardLine{translation.Mark("Next"), next})
	}
	return c
}

// failing distinguishes the failures of a reader's files. The outcome may vary with the time, the expectation does
// not.
func (r Judgement) failing() string {
	bad := failed(slices.Concat(r.Own, r.Earlier))
	switch {
	case r.Compile != nil:
		return r.Compile.Error()
	case len(bad) == 0:
		return ""
	}
	first, _, _ := strings.Cut(bad[0].What, "\n")
	expected, _, _ := strings.Cut(first, "; but ")
	return bad[0].ID + ": " + expected
}

// PrintOwn writes the verdicts of an exercise's own check, as soon as they are known. Unless verbose, the first failure
// hides the others, and has the lines of more.
func (e Exercise) PrintOwn(w io.Writer, verdicts []Result, verbose bool, more ...CardLine) {
	bad := failed(verdicts)
	if verbose || len(bad) == 0 {
		for _, v := range verdicts {
			v.Title = e.said.Say(v.Title)
			v.Print(w, verbose)
		}
		return
	}
	outcome.Line(w, bad[0].Verdict, bad[0].ID, bad[0].Timed(e.said.SayWhole(bad[0].Title)))
	e.printLines(w, append(failureLines(bad[0]), more...))
}

// Card returns a card in the language of the exercise.
func (e Exercise) Card(c *Card) *Card {
	if c == nil {
		return nil
	}
	check, title, _ := strings.Cut(c.Check, ": ")
	said := Card{Passed: c.Passed, Time: c.Time, Check: strings.TrimSuffix(check+": "+e.said.SayWhole(title), ": ")}
	for _, line := range c.Lines {
		said.Lines = append(said.Lines, CardLine{e.said.Say(line.Label), e.said.SayWhole(line.Text)})
	}
	if c.More > 0 {
		said.Lines = append(said.Lines, CardLine{e.Sayf("More"), e.moreFailed(c.More)})
	}
	return &said
}

// moreFailed says what the failures below the first are.
func (e Exercise) moreFailed(more int) string {
	if more == 1 {
		return e.Sayf("One more check failed; it often follows from the first.")
	}
	return e.Sayf("%d more checks failed; they often follow from the first.", more)
}

// printLines writes the lines of a card.
func (e Exercise) printLines(w io.Writer, lines []CardLine) {
	const margin = "               "
	for _, line := range e.Card(&Card{Lines: lines}).Lines {
		var text strings.Builder
		outcome.Wrap(&text, margin, line.Text)
		label := "  " + e.Sayf("%s:", line.Label)
		fmt.Fprint(w, label, strings.Repeat(" ", max(1, len(margin)-output.Width(label))), strings.TrimPrefix(text.String(), margin))
	}
}
