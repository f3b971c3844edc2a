// Package state compares the end state of objects with their end state in undisturbed runs.
package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A State maps paths of some objects to values.
type State map[string]string

// Add notes the values at and below a path, except masked paths; masked may be nil. It identifies items of a list by
// their type or name, if they have one.
func (s State) Add(path string, value any, masked func(path string) bool) {
	if masked != nil && masked(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			s.Add(path+"."+key, item, masked)
		}
	case []any:
		for i, item := range v {
			fields, _ := item.(map[string]any)
			s.Add(path+"["+cmp.Or(text(fields["type"]), text(fields["name"]), fmt.Sprint(i))+"]", item, masked)
		}
	default:
		s[path] = fmt.Sprint(v)
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// Common returns the values that are equal in all states, and the paths whose values vary: a difference there proves
// nothing.
func Common(states []State) (equal State, varying map[string]bool) {
	equal, varying = State{}, map[string]bool{}
	for _, s := range states {
		maps.Copy(equal, s)
	}
	for path, value := range equal {
		for _, s := range states {
			if have, ok := s[path]; !ok || have != value {
				varying[path] = true
			}
		}
	}
	maps.DeleteFunc(equal, func(path, _ string) bool { return varying[path] })
	return equal, varying
}

// Differences are up to ten lines about differences from an undisturbed run, and the number of further differences.
func Differences(got, want State, varying map[string]bool) (lines []string) {
	return Compare(got, want, varying, "undisturbed it")
}

// Compare is Differences whose lines name the wanted value.
func Compare(got, want State, varying map[string]bool, wanted string) (lines []string) {
	for path, value := range want {
		if have, ok := got[path]; varying[path] {
			continue
		} else if !ok {
			lines = append(lines, fmt.Sprintf("%s is missing; %s is %q", path, wanted, value))
		} else if have != value {
			lines = append(lines, fmt.Sprintf("%s is %q; %s is %q", path, have, wanted, value))
		}
	}
	for path, value := range got {
		if _, ok := want[path]; !ok && !varying[path] {
			lines = append(lines, fmt.Sprintf("%s is %q; %s does not exist", path, value, wanted))
		}
	}
	slices.Sort(lines)
	if len(lines) > 10 {
		lines = append(lines[:10], fmt.Sprintf("… %d more", len(lines)-10))
	}
	return lines
}
