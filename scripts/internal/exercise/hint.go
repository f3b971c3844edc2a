package exercise

import (
	"path/filepath"
	"slices"
	"strings"
)

// Hint returns the next hint after the last check of an exercise. The hints go from the general to the exact: for a known
// wrong answer they begin with its hint, and end with the lines of the solution that matter.
func (c Course) Hint(e Exercise, s State) (text string, last bool) {
	h, line := e.hintsFor(s.Failure), e.Sayf("The line:")
	if e.ID == CapstoneID {
		line = e.Sayf("Where to look:")
	}
	hints := []string{e.Sayf("A nudge: %s", reflowed(h.Nudge)), e.Sayf("Why: %s", reflowed(h.Explanation)), line + "\n" + h.Line}
	differs := e.sayDifferences(s.Differs)
	if differs != "" {
		hints[0] = strings.TrimSpace(differs + "\n" + e.fact(s.Differs))
	}
	if w, ok := e.named(s.Wrong, s.Failure); ok {
		known := e.Sayf("This looks like a known wrong answer (%s).", e.said.Say(w.Name))
		if w.Guess {
			known = e.Sayf("It may be a known wrong answer (%s).", e.said.Say(w.Name))
		}
		hints = []string{strings.TrimSpace(known + "\n" + reflowed(w.Hint) + "\n" + differs), hints[2]}
		if lines := e.linesFor(w.Name); lines != "" {
			hints[1] = e.Sayf("The solution has these lines there:") + "\n" + lines
		}
	}
	n := min(s.Hints, len(hints)-1)
	return strings.TrimSpace(hints[n]), n == len(hints)-1
}

// ShownHint returns the hint that was shown last, or what replaced it, and what follows it.
func (c Course) ShownHint(e Exercise, s State) (text, after string) {
	if s.Hints == 0 {
		return "", ""
	}
	if text, ok := c.NoHint(e, s); ok {
		return text, ""
	}
	s.Hints--
	text, last := c.Hint(e, s)
	return text, e.AfterHint(last)
}

// named returns the known wrong answer with a name. Its hint has the words of a failure.
func (e Exercise) named(name, failure string) (Wrong, bool) {
	for _, w := range slices.Concat(e.Wrong, inLanguage(e.said, mistakes)) {
		w.Source, w.Lacks, w.Statement, w.Shape = "", "", "", "" // the files may have changed since the check
		if some := recognise([]Wrong{w}, failure, ""); w.Name == name && len(some) > 0 {
			return some[0], true
		}
	}
	return Wrong{}, false
}

// linesFor returns the lines of the solution in whose place a known wrong answer has others.
func (e Exercise) linesFor(wrong string) string {
	at := slices.IndexFunc(e.Wrong, func(w Wrong) bool { return w.Name == wrong && w.Mistake == "" || w.Mistake == wrong })
	if at < 0 {
		return ""
	}
	var lines []string
	for _, r := range e.Wrong[at].Replace {
		for line := range strings.Lines(r.Old) {
			lines = append(lines, "  "+strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// NoHint returns what replaces a hint when the last check of an exercise did not fail: it passed, or the program did not
// compile and no check ran.
func (c Course) NoHint(e Exercise, s State) (text string, ok bool) {
	messages, isCompile := strings.CutPrefix(s.Failure, errCompile.Error())
	switch {
	case s.Card == nil:
		return "", false
	case s.Card.Passed:
		text = e.Sayf("%s has passed its check, so it needs no hint.", shortID(e))
		return strings.TrimSpace(text + "\n" + c.NextLine(e, s)), true
	case isCompile:
		_, messages, _ = strings.Cut(messages, "\n")
		lines := strings.Split(strings.TrimSpace(messages), "\n")
		text = e.Sayf("Your program does not compile, so no check ran. The first message of the compiler:") + "\n  " + lines[0]
		if w, ok := e.named(s.Wrong, s.Failure); ok {
			text += "\n" + reflowed(w.Hint)
		}
		if at := compileLine.FindStringSubmatch(lines[0]); at != nil {
			text += "\n" + e.Sayf("Open %s at line %s", filepath.ToSlash(at[2]), at[3])
		}
		return text, true
	}
	return "", false
}
