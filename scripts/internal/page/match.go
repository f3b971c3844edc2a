package page

import (
	"regexp"
	"slices"
	"strings"
)

// volatile lists the parts of an output that differ from run to run, and their replacements.
var volatile = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`), ""},
	{regexp.MustCompile(`\r`), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}:\d+\b`), "<ip>:<port>"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`), "<ip>"},
	// The suffixes that Kubernetes generates: k8s.io/apimachinery/pkg/util/rand uses these letters.
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<hash>-<random>"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "-<hash>"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<random>"},
	// The blank is doubled first, because the blank that ends one age can begin the next.
	{regexp.MustCompile(`[ \t]+`), "  "},
	{regexp.MustCompile(`(^|\s|\()(\d+[ydhms]){1,3}(\s|$|\))`), "$1<age>$3"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// progress matches the lines that report the building of programs into bin/. A command prints them only when bin/ lacks
// a program, so a page does not show them.
var progress = regexp.MustCompile("^(building [a-z0-9-]+(, [a-z0-9-]+)*|built into bin/: .*|" +
	"the first time this takes .*|(compiling packages|downloading( and reading)? sources): .*)$")

// normalise splits a text into lines without the parts that differ from run to run, without progress, and without blank
// lines at the beginning and the end.
func normalise(text string) []string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	lines = slices.DeleteFunc(lines, progress.MatchString)
	for i, line := range lines {
		for _, v := range volatile {
			line = v.pattern.ReplaceAllString(line, v.instead)
		}
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

// matches reports whether got equals the output on the page. In want a line "…" stands for any lines and a "…" inside a
// line for any text.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		for skip := range len(got) + 1 {
			if matches(want[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchesLine(want[0], got[0]) && matches(want[1:], got[1:])
}

func matchesLine(want, got string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", got)
	return err == nil && ok
}

// contains reports whether got has each wanted line, in the same order.
func contains(want, got []string) bool {
	_, found := missing(want, got)
	return !found
}

// missing returns the first wanted line that got does not have after the wanted lines before it.
func missing(want, got []string) (line string, found bool) {
	for _, line := range want {
		if line == "…" {
			continue
		}
		i := slices.IndexFunc(got, func(have string) bool { return matchesLine(line, have) })
		if i < 0 {
			return line, true
		}
		got = got[i+1:]
	}
	return "", false
}
