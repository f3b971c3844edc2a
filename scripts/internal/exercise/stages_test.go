package exercise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// someStages are two stages that demand a check, and one that loses a check of before.
var someStages = []Exercise{
	{ID: "04.1", Chapter: "04-x", Solution: "stages/1-watch", Lab: []string{"stage/reports-changes"}},
	{ID: "04.2", Chapter: "04-x", Starter: "stages/1-watch", Solution: "stages/2-create",
		Lab: []string{"behaviour/a", "behaviour/more"}, Also: []string{"behaviour/c"}},
	{ID: "04.3", Chapter: "04-x", Starter: "stages/2-create", Solution: "stages/3-own", Lab: []string{"behaviour/b"},
		Loses: []string{"behaviour/c"}},
	{ID: "04.4", Chapter: "04-x", Solution: "convert.go"},
}

func TestASolutionThatDoesNotLose(t *testing.T) {
	c := Course{All: someStages}
	passed := Result{ID: "behaviour/b", Verdict: "passed"}
	lost := &attempt{e: someStages[2], what: "solution", report: Judgement{Own: []Result{passed}}, losses: []Result{passed}}
	if err := c.judge(lost, &Counts{}); err == nil || !strings.Contains(err.Error(), "it passes behaviour/b") {
		t.Errorf("got %v", err)
	}
}

func TestAStageThatNoCheckDemands(t *testing.T) {
	c := Course{All: someStages}
	idle := &attempt{e: someStages[1], what: "starter", report: Judgement{Own: []Result{
		{ID: "behaviour/a", Verdict: "passed"}, {ID: "behaviour/more", Verdict: "failed"}}}}
	if err := c.judge(idle, &Counts{}); err == nil || !strings.Contains(err.Error(), "passes on the starter") {
		t.Errorf("got %v", err)
	}
}

// TestEachDemandIsShown: `make verify` runs the pages, and so proves that the check which a stage demands fails before
// that stage and passes after it.
func TestEachDemandIsShown(t *testing.T) {
	c := newCourse(t)
	for _, chapter := range []string{"03-client-go-controller", "04-controller-runtime"} {
		var pages []byte
		for _, page := range []string{"README.md", "stages/README.md"} {
			text, err := os.ReadFile(filepath.Join(c.Root, chapter, page))
			testkit.Must(t, err)
			pages = append(pages, text...)
		}
		for _, e := range Stages(c.All, chapter) {
			command := "stages --ch " + chapter[:2] + " --run " + filepath.Base(e.Solution) + " --fast\n"
			if strings.HasPrefix(e.Lab[0], "behaviour/") && !strings.Contains(string(pages), command) {
				t.Errorf("no page of %s has the command %q", chapter, command)
			}
		}
	}
}

// TestAStageIsCompiledUnderItsName: the files are compiled in work/, and a message names the folder of the stage.
func TestAStageIsCompiledUnderItsName(t *testing.T) {
	c := small(t, "test: {files: [checks/add_test.go], run: TestAdd}->lab: [stage/add]", "return 0->return zero",
		"return a + b->return nothing")
	attempts, err := c.pair(c.All[0])
	testkit.Must(t, err)
	testkit.Must(t, c.try(t.Context(), attempts, t.Logf))
	for n, want := range []string{"04-x/begin/add.go:3:33: undefined: zero", "04-x/end/add.go:3:33: undefined: nothing"} {
		if got := fmt.Sprint(attempts[n].report.Compile); !strings.Contains(got, want) || strings.Contains(got, "work/") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
