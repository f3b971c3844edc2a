package outcome

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/term"

	"example.com/operator-workshop/scripts/examine/output"
)

// Columns is the greatest width of the output.
const Columns = 100

// width is the width of the terminal, if there is one, up to Columns.
func width() int {
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && columns > 0 {
		return min(columns, Columns)
	}
	return Columns
}

// margin is the margin below the first line of a result.
const margin = "          "

// leastText is the least width of a text beside its margin, also in a narrow terminal.
const leastText = 20

// Wrap writes a text with a margin, in lines that fit. A word is cut only when it is longer than a line, as JSON, which is
// cut behind a comma. A checked program may have printed the text.
func Wrap(w io.Writer, margin, text string) {
	most := max(width()-len(margin), leastText)
	text = output.Wrap(output.Lines(strings.TrimRight(text, "\n")), most)
	for line := range strings.SplitSeq(text, "\n") {
		rest := []rune(line)
		for len(rest) > most {
			part := rest[:most]
			for n, r := range part {
				if r == ',' {
					part = rest[:n+1]
				}
			}
			fmt.Fprintln(w, margin+string(part))
			rest = rest[len(part):]
		}
		fmt.Fprintln(w, strings.TrimRight(margin+string(rest), " "))
	}
}

// Line writes a line that begins with a verdict and a name. It wraps a long text below itself.
func Line(w io.Writer, v Verdict, name, text string) {
	head := fmt.Sprintf("%s%-32s ", v.Head(), output.Line(name))
	var lines strings.Builder
	Wrap(&lines, strings.Repeat(" ", len(head)), text)
	fmt.Fprint(w, head, strings.TrimLeft(lines.String(), " "))
}

// FirstLine is the first line of a text, with a mark when more follows.
func FirstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

// Brief is the title and the first line of the observation, in lines that fit.
func (r Result) Brief() string {
	var text strings.Builder
	Wrap(&text, strings.Repeat(" ", len(r.Verdict.Head())), r.Title+": "+FirstLine(r.What))
	return r.Verdict.Head() + strings.TrimSpace(text.String())
}

// Head is the beginning of a line with the verdict.
func (v Verdict) Head() string { return fmt.Sprintf("  %-7s ", v) }

// Print writes a result: one line, and below it the reason and the evidence of a failure. Unless verbose, it leaves out
// some of the evidence.
func (r Result) Print(w io.Writer, verbose bool) {
	if r.Accepted != "" {
		Line(w, r.Verdict, r.ID, r.Accepted+": "+r.Title)
		return
	}
	Line(w, r.Verdict, r.ID, r.Timed(r.Title))
	if r.What != "" {
		Wrap(w, margin, r.What)
	}
	evidence := r.Evidence
	if !verbose {
		evidence = brief(evidence)
	}
	for _, line := range evidence {
		Wrap(w, margin+"| ", plain(line))
	}
	for _, line := range r.Counts() {
		Wrap(w, margin, line)
	}
}

// Counts has a line for each phase in which the check counted requests.
func (r Result) Counts() (lines []string) {
	for _, phase := range slices.Sorted(maps.Keys(r.Requests)) {
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(r.Requests[phase])) {
			counts = append(counts, fmt.Sprintf("%d %s", r.Requests[phase][kind], kind))
		}
		lines = append(lines, phase+": "+cmp.Or(strings.Join(counts, ", "), "no request"))
	}
	return lines
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// plain writes the fields at the end of a line of a log without the quotes and escapes of JSON.
func plain(line string) string {
	at := strings.Index(line, `{"`)
	if at < 0 || !json.Valid([]byte(line[at:])) {
		return line
	}
	fields := strings.TrimSuffix(line[at+1:], "}")
	return line[:at] + quoted.ReplaceAllStringFunc(fields, func(text string) string {
		_ = json.Unmarshal([]byte(text), &text)
		return text
	})
}

// mostEvidence is how many lines of evidence are shown unless more is asked for.
const mostEvidence = 14

// stackLine matches a line in the trace of a panic or of a logger.
var stackLine = regexp.MustCompile(
	`^(goroutine \d+|\t|\s+/|[\w./*()-]+\(0x|runtime[./]|created by |k8s\.io/|sigs\.k8s\.io/)`)

// whoseLog matches the fields that controller-runtime adds to each line of a log.
var whoseLog = regexp.MustCompile(`\{"controller": .*"reconcileID": "[^"]*"(, )?`)

// stamp matches the time at the beginning of a line of a log.
var stamp = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\S+|[IWEF]\d{4} [\d:.]+)\s+`)

// IsTrace reports whether a line belongs to the trace of a panic or of a logger.
func IsTrace(line string) bool { return stackLine.MatchString(line) }

// LogLine returns a line of a log without the fields that name the controller, and without the quotes of JSON.
func LogLine(line string) string { return plain(withoutController(line)) }

// errorLine matches a line of a log with an error, as zap, klog and slog write it. errorHead is what zap and klog write
// before the message, errorField is the error.
var (
	errorLine  = regexp.MustCompile(errorHead.String() + `|"level":"error"|\blevel=ERROR\b`)
	errorHead  = regexp.MustCompile(`^(?:\S+\s+ERROR\s+|E\d{4} [\d:.]+ [^\]]*\] )`)
	errorField = regexp.MustCompile(`(?:"error":\s*|\b(?:err|error)=)("(?:[^"\\]|\\.)*")`)
)

// LoggedError returns the error in a line of a log; a line with another level has none.
func LoggedError(line string) (text string, ok bool) {
	if !errorLine.MatchString(line) {
		return "", false
	}
	if field := errorField.FindStringSubmatch(line); field != nil && json.Unmarshal([]byte(field[1]), &text) == nil {
		return text, true
	}
	return LogLine(errorHead.ReplaceAllString(line, "")), true
}

func withoutController(line string) string {
	return strings.TrimSuffix(whoseLog.ReplaceAllString(line, "{"), "\t{}")
}

// brief returns the first lines of some evidence, without traces and repetitions.
func brief(lines []string) []string {
	lines = unrepeated(slices.DeleteFunc(slices.Clone(lines), stackLine.MatchString))
	for n, line := range lines {
		lines[n] = withoutController(line)
	}
	if more := len(lines) - mostEvidence; more > 0 {
		lines = append(lines[:mostEvidence], fmt.Sprintf("… %d more lines: VERBOSE=1", more))
	}
	return lines
}

// unrepeated returns each line of a log once, with its number of repetitions.
func unrepeated(lines []string) (some []string) {
	count, first := map[string]int{}, map[string]int{}
	for _, line := range lines {
		text := stamp.ReplaceAllString(line, "")
		if count[text]++; text == line || count[text] == 1 {
			first[text], some = len(some), append(some, line)
		}
	}
	for text, n := range count {
		if at := first[text]; n > 1 && some[at] != text {
			some[at] += fmt.Sprintf(" (%d times)", n)
		}
	}
	return some
}
