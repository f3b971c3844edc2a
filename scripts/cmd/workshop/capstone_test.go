package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/testkit"
)

const kindPage = "04-controller-runtime/exercises/kind/"

// printed are the commands of the page about one's own kind.
func printed(t *testing.T, page string) (blocks []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```sh [^\n]*\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// firstFailures are those of wrong answers of exercise 04.15.
var firstFailures = map[string]string{
	"a child without an owner":          "failed  children ",
	"a child that is not watched":       "Done:        A user deleted configmaps/sample.",
	"a value that is not from the spec": "Expected:    spec.color reaches the ConfigMap",
}

// TestFromAPlanToAnOperator begins as the page says, without a terminal. Then it writes the operator of exercise 04.15:
// the check passes, and of each wrong operator the first failure is that of the mistake.
func TestFromAPlanToAnOperator(t *testing.T) {
	l := newLearner(t)
	l.does(false, "exercise --ex capstone --kind Note", "this is not a terminal", "SPEC=work/greeting.yaml", specification.Example)
	l.answers(true, "exercise --ex capstone --kind Salute", "example.com\n1\nmessage string\n\nReady", "Children, by number",
		"The starter was put into work/capstone")
	blocks := printed(t, testkit.Read(t, filepath.Join(l.root, kindPage, "README.md")))
	if len(blocks) != 3 || !strings.Contains(blocks[0], specification.Example) {
		t.Fatalf("the page has the commands %q", blocks)
	}
	begin := exec.CommandContext(t.Context(), "bash", "-ec", blocks[0])
	begin.Dir = l.root
	if out, err := begin.CombinedOutput(); err != nil || !strings.Contains(string(out), "The starter was put into work/capstone") {
		t.Fatalf("%v\n%s", err, out)
	}
	l.does(false, strings.TrimPrefix(blocks[1], "make "), "failed  crd ", "a sample with each field is accepted",
		`unknown field "spec.message"`)
	l.does(true, "hint", "A nudge: Compare specification.yaml")
	l.does(true, "hint", "Why: The API server knows only the schema")
	l.does(true, "hint", "Where to look:", "That was the last hint")

	l.does(true, "exercise --ex capstone --spec "+kindPage+"specification.yaml", "Your files of before are saved in work/.saved/")
	for _, name := range []string{"types.go", "main.go"} {
		testkit.Must(t, os.Remove(filepath.Join(l.root, "work/capstone", name)))
		l.copies(kindPage+"2-complete/"+name, "work/capstone/"+name)
	}
	l.does(true, "check", "passed  children ", "a sample owns its ConfigMap", "passed  restart ", "capstone is done")
	e, err := exercise.Load(l.root)
	testkit.Must(t, err)
	note, err := exercise.Find(e, "04.15")
	testkit.Must(t, err)
	mine := filepath.Join(l.root, "work/capstone/main.go")
	right, tried := testkit.Read(t, mine), 0
	for _, w := range note.Wrong {
		if first := firstFailures[w.Name]; first != "" {
			l.edits("work/capstone/main.go", w.Replace[0].Old, w.Replace[0].New)
			l.does(false, "check", first, "make hint")
			out, err := l.command("watch", "--ex", "capstone").CombinedOutput()
			if err != nil || !strings.Contains(string(out), ">>> here it differed: expected that") {
				t.Errorf("%v\n%s", err, out)
			}
			testkit.Must(t, os.WriteFile(mine, []byte(right), 0o600))
			tried++
		}
	}
	if tried != len(firstFailures) {
		t.Errorf("%d wrong operators were tried", tried)
	}
}
