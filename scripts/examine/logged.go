package examine

import (
	"regexp"
	"strings"
)

// details are the parts of a message that differ from try to try: identifiers, times, durations and numbers.
var details = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b\d[\d.]*(?:[mµn]?s\b)?`)

// A repeated is a message, and how often the operator printed it in the first and in the second half of a window.
type repeated struct {
	line        string // the last one
	early, late int
}

// mostRepeated is the message about a namespace that the operator printed most often in the second half of a window.
func mostRepeated(early, late, namespace string) (most repeated) {
	about := regexp.MustCompile(`\b` + regexp.QuoteMeta(namespace) + `\b`)
	all := map[string]repeated{}
	for half, log := range []string{early, late} {
		for line := range strings.Lines(log) {
			if !about.MatchString(line) {
				continue
			}
			message := details.ReplaceAllString(line, "0")
			m := repeated{strings.TrimSpace(line), all[message].early + 1 - half, all[message].late + half}
			if all[message] = m; m.late > most.late {
				most = m
			}
		}
	}
	return most
}

// tooOften reports whether an operator prints a message more often than tries with exponential backoff need. It is as
// careful as watched.hot: such tries come at most twice in the second half of a window, and each may be some tries at once.
func (r repeated) tooOften() bool { return r.late > 8 && r.late*3 > r.early }

// judgeLog makes a finding of the messages that were repeated most in some windows in which writes failed.
func judgeLog(logs []repeated) Finding {
	most := logs[0]
	for _, l := range logs {
		if l.tooOften() && !most.tooOften() || l.tooOften() == most.tooOften() && l.late > most.late {
			most = l
		}
	}
	if most.tooOften() {
		return failed("it printed a message %d times in %v, far more often than tries with exponential backoff", most.late,
			window/2).with(shortened(most.line, 400))
	}
	return passed("at most %d lines with the same message about the sample in the second half of %v", most.late, window)
}
