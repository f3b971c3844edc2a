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

// A failureLog is what the operator printed while writes failed. whole is from the creation of the sample on, of a failure that
// let nothing change.
type failureLog struct{ window, whole repeated }

// mostLines is how often an operator may print a line about an error that stays: an event may come between.
const mostLines = 2

// judgeLogs makes findings of the messages that were repeated most while writes failed: whether they come without backoff, and
// if not, whether they come more than once.
func judgeLogs(logs []failureLog) (short, once Finding) {
	worst, most := repeated{}, repeated{}
	for _, l := range logs {
		w := l.window
		if w.tooOften() && !worst.tooOften() || w.tooOften() == worst.tooOften() && w.late > worst.late {
			worst = w
		}
		if l.whole.late > most.late {
			most = l.whole
		}
	}
	if worst.tooOften() {
		return failed("it printed a message %d times in %v, far more often than tries with exponential backoff", worst.late,
			window/2).with(shortened(worst.line, 400)), once
	}
	short = passed("at most %d lines with the same message about the sample in the second half of %v", worst.late, window)
	if most.late > mostLines {
		return short, failed("it logged the same line %d times, while nothing but the number of tries changed", most.late).
			with(shortened(most.line, 400))
	}
	return short, passed("at most %d lines with the same message about the sample while its writes failed", most.late)
}
