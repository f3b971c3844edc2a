package exercise

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/internal/outcome"
)

// CapstoneID is the ID of the exercise without stages, from an empty program to all behaviours.
const CapstoneID = "capstone"

// Capstone returns that exercise. Its program is in the module of chapter 04, so that it may use the types of the API.
var Capstone = Exercise{ID: CapstoneID, Title: "An operator from an empty file", Minutes: 240,
	Chapter: "04-controller-runtime", Folder: "capstone", Starter: "exercises/empty", File: "main.go",
	Lab: []string{outcome.Behaviours},
	Story: `You have an empty program, the types of the API, and the 14 behaviours that the lab checks. Write the
operator in whatever way you like. The score says which behaviours your program shows; a behaviour counts when all of
its checks pass.

A second one has no answer in the workshop: 04-controller-runtime/exercises/second-kind.yaml specifies three operators
for your own kinds, and says where to begin. Write one of them, and let make examine judge it.`}

// Score has the number of passed checks of each behaviour, by the number of the behaviour.
type Score map[string][]Verdict

// Behave runs all checks of behaviours on the reader's program.
func (c Course) Behave(ctx context.Context, e Exercise) ([]Verdict, error) {
	if _, err := c.Sound(e); err != nil {
		return nil, err
	}
	var r Report
	err := c.operate(ctx, e, ".", Job{Name: e.ID, Checks: e.Lab}, nil, &r)
	return r.Earlier, err
}

// ScoreOf groups verdicts by behaviour.
func ScoreOf(verdicts []Verdict) Score {
	score := Score{}
	for _, v := range verdicts {
		number, _, _ := strings.Cut(strings.TrimPrefix(v.Check, "behaviour/"), "-")
		score[number] = append(score[number], v)
	}
	return score
}

// same returns the reason of all verdicts when all have the same reason: such a program does not start.
func (s Score) same() (reason string) {
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

// Print writes a line for each behaviour, and returns how many behaviours are shown in full.
func (s Score) Print(w io.Writer, verbose bool) (shown int) {
	numbers := make([]string, 0, len(s))
	for number := range s {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	if reason := s.same(); reason != "" {
		outcome.Wrap(w, "", "No check could begin: "+reason)
		fmt.Fprintf(w, "0 of %d behaviours\n", len(s))
		return 0
	}
	for _, number := range numbers {
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
	return shown
}
