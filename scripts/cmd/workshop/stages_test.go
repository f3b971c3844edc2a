package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/outcome"
)

var someStages = []stage{
	{Dir: "stages/0-shell"},
	{Dir: "stages/1-watch", Passes: []string{}},
	{Dir: "stages/2-create", Demands: "behaviour/a", Passes: []string{"behaviour/a", "behaviour/c"}},
	{Dir: "stages/3-own", Demands: "behaviour/b", Passes: []string{"behaviour/a", "behaviour/b"}},
}

func TestTheTableOfStages(t *testing.T) {
	var out strings.Builder
	printStages(&out, someStages)
	want := "STAGE PASSES GAINED (LOST)\n1-watch 0\n2-create 2 a c\n3-own 2 b (c)"
	if got := regexp.MustCompile(` +`).ReplaceAllString(strings.TrimSpace(out.String()), " "); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestNeededStages(t *testing.T) {
	for pattern, want := range map[string][]int{"": {1, 2, 3}, "3-own": {2, 3}, "1-watch": {1}, "9": nil} {
		if got := neededStages(someStages, regexp.MustCompile(pattern)); !slices.Equal(got, want) {
			t.Errorf("for %q: %v, want %v", pattern, got, want)
		}
	}
}

func TestChecksForAStage(t *testing.T) {
	all := []string{"behaviour/a", "behaviour/b", "behaviour/c"}
	if got := checksFor(someStages, 1, false); !slices.Equal(got, all) {
		t.Errorf("all of stage 1: %q, want %q", got, all)
	}
	for n, want := range map[int][]string{
		0: nil, 1: {"behaviour/a"}, 2: {"behaviour/a", "behaviour/b"}, 3: {"behaviour/b"}} {
		if got := checksFor(someStages, n, true); !slices.Equal(got, want) {
			t.Errorf("the fast ones of stage %d: %q, want %q", n, got, want)
		}
	}
}

// judged makes verdicts of words such as "a passed".
func judged(words ...string) verdicts {
	all := verdicts{}
	for _, word := range words {
		check, verdictOn, _ := strings.Cut(word, " ")
		all["behaviour/"+check] = exercise.Verdict{Verdict: outcome.Verdict(verdictOn)}
	}
	return all
}

func TestStagesThatAreNotAsListed(t *testing.T) {
	before := judged("a passed", "b failed")
	for name, test := range map[string]struct {
		before, now verdicts
		want        string
	}{
		"as listed":                   {before, judged("a passed", "b passed", "c skipped"), ""},
		"of a few checks":             {before, judged("b passed"), ""},
		"does not pass what it needs": {before, judged("a passed", "b skipped"), "must pass behaviour/b: skipped"},
		"adds nothing":                {judged("b passed"), judged("b passed"), "the stage before passes it"},
		"passes more":                 {before, judged("b passed", "c passed"), "as stages.yaml says: behaviour/c: passed"},
		"passes less":                 {before, judged("a failed", "b passed"), "as stages.yaml says: behaviour/a: failed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := disagreement(someStages[3], test.before, test.now)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestEachDemandIsShown: `make verify` runs the pages, and so proves that the check which a stage demands fails before
// that stage and passes after it.
func TestEachDemandIsShown(t *testing.T) {
	lists, err := filepath.Glob("../../../*/stages.yaml")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no chapter has stages: %v", err)
	}
	for _, list := range lists {
		dir := filepath.Dir(list)
		stages, err := stagesOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		var pages []byte
		for _, page := range []string{"README.md", "stages/README.md"} {
			text, err := os.ReadFile(filepath.Join(dir, page))
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, text...)
		}
		for _, s := range stages {
			command := "stages --ch " + filepath.Base(dir)[:2] + " --run " + filepath.Base(s.Dir) + " --fast\n"
			if s.Demands != "" && !strings.Contains(string(pages), command) {
				t.Errorf("no page of %s has the command %q", dir, command)
			}
		}
	}
}
