package report

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/operator-workshop/scripts/lab/benchmark"
)

// space is a space at which no line is broken.
const space = "\u00a0"

// number separates thousands: 12,345.
func number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is a number with a noun: "1 check", "2 checks".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// and joins words as a sentence does.
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// capital turns the first letter into a capital.
func capital(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

// duration rounds to three digits, which is more than the precision of any measurement.
func duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case d == 0:
		return "0" + space + "s"
	case s < 0.9995:
		return digits(s*1000) + space + "ms"
	case s < 99.95:
		return digits(s) + space + "s"
	case s < 600:
		return fmt.Sprintf("%.0f"+space+"s", s)
	default:
		return fmt.Sprintf("%.0f"+space+"min", d.Minutes())
	}
}

// digits rounds to three significant digits, without zeros at the end.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

const miB = 1 << 20

func mebibytes(n int64) string {
	if n <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f"+space+"MiB", float64(n)/miB)
}

// per is a count for each object, or the total when it cannot be divided evenly.
func per(total, objects int) string {
	switch {
	case objects <= 0:
		return number(total) + space + "in" + space + "all"
	case total%objects == 0:
		return number(total / objects)
	default:
		return fmt.Sprintf("%s (%s"+space+"in"+space+"all)", digits(float64(total)/float64(objects)), number(total))
	}
}

// limits formats an interval: "1.25 to 1.38", or a dash when there were too few measurements.
func limits(i benchmark.Interval) string {
	if i.High == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f"+space+"to"+space+"%.2f", i.Low, i.High)
}

var terminal = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// clean removes text that no page can show: broken UTF-8, a terminal's colours and other control characters.
func clean(s string) string {
	s = strings.ReplaceAll(terminal.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), ""), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func filter[T any](s []T, keep func(T) bool) (kept []T) {
	for _, v := range s {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
