package exercise

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// CapstoneID is the ID of the exercise without stages, from an empty program to all behaviours.
const CapstoneID = "capstone"

// Capstone returns that exercise. Its program is in the module of chapter 04, so that it may use the types of the API.
var Capstone = Exercise{ID: CapstoneID, Title: "An operator from an empty file", Minutes: 240,
	Chapter: "04-controller-runtime", Folder: "capstone", Starter: "exercises/empty", File: "main.go",
	Lab: []string{outcome.Behaviours}, Fresh: true,
	Story: `You have an empty program, the types of the API, and the 14 behaviours that the lab checks. Write the
operator in whatever way you like. The score says which behaviours your program shows; a behaviour counts when all of
its checks pass.

A second one has no answer in the workshop: 04-controller-runtime/exercises/second-kind.yaml specifies three operators
for your own kinds, and says where to begin. Write one of them, and let make examine judge it.`}

// A score has the verdicts on the checks of each behaviour, by the number of the behaviour.
type score map[string][]Verdict

// scoreOf groups verdicts by behaviour.
func scoreOf(verdicts []Verdict) score {
	s := score{}
	for _, v := range verdicts {
		number, _, _ := strings.Cut(strings.TrimPrefix(v.Check, "behaviour/"), "-")
		s[number] = append(s[number], v)
	}
	return s
}

// same returns the reason of all verdicts when all have the same reason: such a program does not start.
func (s score) same() (reason string) {
	for _, verdicts := range s {
		for _, v := range verdicts {
			if v.Passed() || reason != "" && v.Reason != reason {
				return ""
			}
			reason = v.Reason
		}
	}
	return reason
}

// print writes a line for each behaviour, and how many behaviours are shown in full.
func (s score) print(w io.Writer, verbose bool) {
	if reason := s.same(); reason != "" {
		outcome.Wrap(w, "", "No check could begin: "+reason)
		fmt.Fprintf(w, "0 of %d behaviours\n", len(s))
		return
	}
	shown := 0
	for _, number := range slices.Sorted(maps.Keys(s)) {
		passed, first := 0, ""
		for _, v := range s[number] {
			if v.Passed() {
				passed++
			} else if first == "" {
				first = v.Check + ": " + v.Title
			}
		}
		if passed == len(s[number]) {
			shown++
		}
		fmt.Fprintf(w, "  %s  %2d of %2d checks\n", number, passed, len(s[number]))
		if first != "" {
			outcome.Wrap(w, "          ", first)
		}
		for _, v := range s[number] {
			if verbose && !v.Passed() {
				v.Print(w, true)
			}
		}
	}
	fmt.Fprintf(w, "%d of %d behaviours\n", shown, len(s))
	if shown < len(s) && !verbose {
		fmt.Fprintln(w, "VERBOSE=1 shows the evidence.")
	}
}
