// Package difference finds where a Go program differs from a solution of the same task. It compares statements, and not
// lines: the order of functions, their names, and the way in which an error is handed on make no difference.
package difference

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Difference is a statement that only one of two programs has, or in whose place they have different ones.
type Difference struct {
	// File and Line are the place in the program. Line is 0 when only the solution has the statement.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Mine is the statement of the program, Other that of the solution. One of them may be empty. When both are there,
	// they are the parts that differ.
	Mine  string `json:"mine,omitempty"`
	Other string `json:"other,omitempty"`
	// Statement is the whole statement of the program. A variable in it that only names a value is that value.
	Statement string `json:"statement,omitempty"`
	// Kind says more of Mine; most differences have none.
	Kind Kind `json:"kind,omitempty"`

	// key and other compare the statements of the program and of the solution.
	key, other string
}

// Place returns the file and the line, as a compiler writes them.
func (d Difference) Place() string { return fmt.Sprintf("%s:%d", d.File, d.Line) }

// Meets reports whether two differences are about one statement, of the program or of the solution.
func (d Difference) Meets(other Difference) bool {
	return d.key != "" && d.key == other.key || d.other != "" && d.other == other.other
}

// A Kind of difference.
type Kind string

// The kinds of differences.
const (
	// Ends is a condition whose block ends its function.
	Ends Kind = "ends"
	// EndsLoop is a return without an error in a loop, or the condition before it.
	EndsLoop Kind = "ends loop"
	// Drops is a call whose error nothing uses, or an error after which the function goes on.
	Drops Kind = "drops"
	// Unread is a Get into a variable that nothing reads.
	Unread Kind = "unread"
	// Before is a statement that the solution has, too, but after Other.
	Before Kind = "before"
	// Shown is a statement that shows a mistake with other statements, although the solution may have it, too.
	Shown Kind = "shown"
)

// Sources has files by their names.
type Sources = map[string][]byte

// Of returns the differences of a program from a solution: first the statements of the program, in its order, then those
// that it lacks. The statements of the starter are not the reader's work, and no difference. A program that does not compile
// has none.
func Of(mine, solution, starter Sources) (all []Difference) {
	own, others := statementsOf(mine), statementsOf(solution)
	if len(own) == 0 {
		return nil
	}
	extra, missing := pair(without(own, others), without(others, own))
	if len(extra)+len(missing) == 0 {
		return moved(own, others)
	}
	for _, s := range without(extra, statementsOf(starter)) {
		d := Difference{File: s.file, Line: s.line, Mine: s.text, Kind: s.kind, Statement: s.text, key: s.key}
		if at := nearest(s, missing); at >= 0 {
			d.other = missing[at].key
			switch {
			case "alone "+missing[at].key == s.key:
				d.Kind = Drops
			case s.text == missing[at].text: // of another type
				missing = slices.Delete(missing, at, at+1)
				continue
			case s.kind != Drops:
				d.Mine, d.Other = contrast(s.text, missing[at].text)
			}
			missing = slices.Delete(missing, at, at+1)
		}
		all = append(all, d)
	}
	for _, s := range missing {
		all = append(all, Difference{Other: s.text, other: s.key})
	}
	return all
}

// Statements returns the statements of a program, in their order.
func Statements(p Sources) (all []string) {
	for _, s := range statementsOf(p) {
		all = append(all, s.text)
	}
	return all
}

// moved returns the first statement that comes before another, when both programs have the same statements and the
// solution has them the other way round.
func moved(own, others []statement) []Difference {
	for n := range min(len(own), len(others)) {
		if !own[n].isLike(others[n]) {
			return []Difference{{File: own[n].file, Line: own[n].line, Mine: own[n].text, Statement: own[n].text, Other: others[n].text,
				Kind: Before, key: own[n].key, other: others[n].key}}
		}
	}
	return nil
}

// without returns the statements of a that b has not, or has less often.
func without(a, b []statement) (some []statement) {
	count := map[string]int{}
	for _, s := range b {
		count[s.key]++
	}
	for _, s := range a {
		if count[s.key]--; count[s.key] < 0 {
			some = append(some, s)
		}
	}
	return some
}

// pair leaves out the statements of two programs that are equal but for variables whose type no declaration has.
func pair(a, b []statement) (left, right []statement) {
	right = slices.Clone(b)
	for _, s := range a {
		if at := slices.IndexFunc(right, s.isLike); at >= 0 {
			right = slices.Delete(right, at, at+1)
		} else {
			left = append(left, s)
		}
	}
	return left, right
}

// isLike reports whether two statements are equal when a variable of unknown type may be any other.
func (s statement) isLike(other statement) bool {
	return slices.EqualFunc(names.FindAllString(s.key, -1), names.FindAllString(other.key, -1), func(a, b string) bool {
		return a == b || a == anyVariable || b == anyVariable
	})
}

// names matches a name, or any other character.
var names = regexp.MustCompile(`[\w·]+|\S`)

// nearest returns the related statement that has most words in common with s, and at least half of them; or -1.
func nearest(s statement, others []statement) int {
	best, at := 0.5, -1
	for n, other := range others {
		a, b := words(s.text), words(other.text)
		common := 0
		for _, word := range a {
			if slices.Contains(b, word) {
				common++
			}
		}
		if ratio := 2 * float64(common) / float64(len(a)+len(b)); ratio >= best && isRelated(s.text, other.text) {
			best, at = ratio, n
		}
	}
	return at
}

// called matches a function that a statement calls, and assigned the two sides of an assignment.
var (
	called   = regexp.MustCompile(`(\w+)\(`)
	assigned = regexp.MustCompile(`^(.*?) :?= (.*)$`)
)

// isRelated reports whether one statement may be in the place of the other: two assignments have common words on the same
// side, and two calls have a common function. Common variables alone make no relation.
func isRelated(a, b string) bool {
	haveCommon := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
	}
	left, right := assigned.FindStringSubmatch(a), assigned.FindStringSubmatch(b)
	if left != nil && right != nil && !haveCommon(words(left[1]), words(right[1])) && !haveCommon(words(left[2]), words(right[2])) {
		return false
	}
	first, second := called.FindAllString(a, -1), called.FindAllString(b, -1)
	return len(first) == 0 || len(second) == 0 || haveCommon(first, second)
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
