package exercise

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/translation"
)

// logged returns a sentence with the last error that the operator logged about the object of a failure, or else with the
// last error that may belong to the check. It is empty when there is none, or when the outcome already has its words.
func logged(v Result, happened string) string {
	const most, fewest = 120, 3
	conflicts := 0
	for _, line := range v.Evidence {
		if strings.Contains(line, isConflict) {
			conflicts++
		}
	}
	lines := slices.DeleteFunc(slices.Clone(v.Evidence), func(line string) bool {
		_, ok := outcome.LoggedError(line)
		return !ok || isOfAnother(line, v) || conflicts < fewest && strings.Contains(line, isConflict)
	})
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	for _, about := range lines {
		if isAboutObject(about, v) {
			line = about
		}
	}
	text, _ := outcome.LoggedError(line)
	if v.Namespace != "" {
		text = strings.ReplaceAll(text, v.Namespace+"/", "")
	}
	if strings.Contains(happened, text[strings.LastIndex(text, ": ")+1:]) {
		return ""
	}
	if short := []rune(text); len(short) > most {
		text = string(short[:most-1]) + "…"
	}
	return fmt.Sprintf(translation.Mark("The operator logged: “%s”"), text)
}

// isConflict is a part of an error that the next try of Reconcile ends, unless it comes again and again.
const isConflict = "the object has been modified"

var (
	// ofCheck matches the namespace of a check: checks share one operator and its log.
	ofCheck = regexp.MustCompile(`\b(?:survey|(?:behaviour|fault|stage)-[a-z0-9-]+)-[a-z0-9]{5}\b`)
	// webIsGone is an error that follows from the deletion of a MyWeb, and deletesWebs an experiment that deletes one.
	webIsGone   = regexp.MustCompile(`(?i)\bmywebs?\S* \\*"[^"\\]+\\*" not found`)
	deletesWebs = regexp.MustCompile(`deleted MyWeb|MyWeb\b.* deleted`)
	// nameInLog is the field that controller-runtime adds for the name of the object.
	nameInLog = regexp.MustCompile(`"name": ?"([^"]+)"`)
)

// isOfAnother reports whether a line of a log is about another check, or about a MyWeb that the check deleted.
func isOfAnother(line string, v Result) bool {
	namespaces := ofCheck.FindAllString(line, -1)
	if len(namespaces) > 0 && !slices.Contains(namespaces, v.Namespace) {
		return true
	}
	return webIsGone.MatchString(line) && deletesWebs.MatchString(v.Did+"\n"+v.Title)
}

// isAboutObject reports whether a line of a log is about an object that a failure names.
func isAboutObject(line string, v Result) bool {
	name := nameInLog.FindStringSubmatch(line)
	if name == nil {
		return false
	}
	words := strings.FieldsFunc(v.Did+" "+v.What, func(r rune) bool { return strings.ContainsRune(" \n\",.:;", r) })
	return slices.Contains(words, name[1])
}

// took matches the time of a request, between its code and its effect.
var took = regexp.MustCompile(` [\d.]+(?:µs|ms|s)\b`)

// requestOf returns the first request that the operator must not have sent. A reason has the requests below its first line.
func requestOf(lines []string) string {
	if len(lines) < 2 || !strings.Contains(lines[0], "but the operator sent ") {
		return ""
	}
	line := strings.TrimSpace(lines[1])
	request := took.ReplaceAllString(clock.ReplaceAllString(line, ""), "")
	if request == line {
		return ""
	}
	return fmt.Sprintf(translation.Mark("Its first request: %s"), request)
}

// ended returns a text without the colon before lines that are not shown.
func ended(text string) string { return strings.TrimRight(text, ": ") }

// printedOf returns what a program printed before its end: the error that explains it, or the last lines. A reason has
// them below its first line.
func printedOf(lines []string) (some []string) {
	const most = 3
	ownLines := lines[1:]
	switch {
	case strings.HasSuffix(lines[0], "Its first error:"):
		ownLines = ownLines[:min(len(ownLines), 1)]
	case strings.HasSuffix(lines[0], "Its last lines:"):
		ownLines = ownLines[max(0, len(ownLines)-most):]
	default:
		return nil
	}
	for _, line := range ownLines {
		some = append(some, strings.TrimSpace(outcome.LogLine(line)))
	}
	return some
}
