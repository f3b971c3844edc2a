package difference

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// contrast returns the parts in which two statements differ. The second part is empty when the first statement only has more,
// and the first part is empty when it lacks arguments.
func contrast(a, b string) (string, string) {
	if lacks := lackedBy(a, b); lacks != "" {
		return "", lacks
	}
	first, second := tokens(a), tokens(b)
	begin, end := 0, 0
	for begin < min(len(first), len(second)) && first[begin] == second[begin] {
		begin++
	}
	for end < min(len(first), len(second))-begin && first[len(first)-1-end] == second[len(second)-1-end] {
		end++
	}
	mine, other := strings.Join(first[begin:len(first)-end], ""), strings.Join(second[begin:len(second)-end], "")
	if !isWhole(mine) || other != "" && !isWhole(other) {
		return a, b
	}
	return strings.Trim(mine, " ,."), strings.Trim(other, " ,.")
}

// call matches the function and the arguments of a call.
var call = regexp.MustCompile(`^(?:.* :?= )?[\w.]*?(\w+)\((.*)\)$`)

// lackedBy returns the arguments of the call b that are like no argument of the call a. The two call one function, and b has
// more arguments.
func lackedBy(a, b string) string {
	first, second := call.FindStringSubmatch(a), call.FindStringSubmatch(b)
	if first == nil || second == nil || first[1] != second[1] {
		return ""
	}
	mine, others := arguments(first[2]), arguments(second[2])
	if len(others) <= len(mine) {
		return ""
	}
	isLike := func(one, other string) bool {
		if function := called.FindString(one); function != "" {
			return function == called.FindString(other)
		}
		return one[strings.LastIndex(one, ".")+1:] == other[strings.LastIndex(other, ".")+1:]
	}
	lacks := slices.DeleteFunc(others, func(other string) bool {
		return slices.ContainsFunc(mine, func(one string) bool { return isLike(one, other) })
	})
	return strings.Join(lacks, ", ")
}

// arguments splits the arguments of a call.
func arguments(text string) (all []string) {
	opened, begin := 0, 0
	for at, r := range text {
		switch {
		case strings.ContainsRune("([{", r):
			opened++
		case strings.ContainsRune(")]}", r):
			opened--
		case r == ',' && opened == 0:
			all, begin = append(all, strings.TrimSpace(text[begin:at])), at+1
		}
	}
	return append(all, strings.TrimSpace(text[begin:]))
}

// isWhole reports whether a part of a statement can be read alone.
func isWhole(part string) bool {
	opened := 0
	for _, r := range part {
		switch r {
		case '(', '{', '[':
			opened++
		case ')', '}', ']':
			if opened--; opened < 0 {
				return false
			}
		}
	}
	return opened == 0 && len(words(part)) > 0
}

// operators have two characters.
var operators = []string{"==", "!=", ":=", "&&", "||"}

// tokens splits a statement into expressions with their dots, and single other characters.
func tokens(text string) (all []string) {
	isName := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' }
	name := false
	for _, r := range text {
		if name && isName(r) || len(all) > 0 && slices.Contains(operators, all[len(all)-1]+string(r)) {
			all[len(all)-1] += string(r)
		} else {
			all = append(all, string(r))
		}
		name = isName(r)
	}
	return all
}
