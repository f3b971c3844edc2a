package exercise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// small is a checkout with one exercise that needs no control plane. Changes are old->new, in its list.
func small(t *testing.T, changes ...string) Course {
	t.Helper()
	root := t.TempDir()
	list := `exercises:
- id: "04.1"
  title: Sums
  minutes: 1
  story: Add.
  starter: begin
  solution: end
  file: add.go
  test: {files: [checks/add_test.go], run: TestAdd}
  fails: "the sum is 0"
  hints: {nudge: plus, explanation: plus is +, line: return a + b}
  wrong:
  - {name: minus, replace: [{old: a + b, new: a - b}], says: the sum is -1, hint: Minus is not plus.}
  - {name: twice, replace: [{old: a + b, new: a + a}], says: the sum is 2, hint: b is missing.}
`
	files := map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.26.0\n", "go.sum": "",
		"begin/add.go": "package x\n\nfunc Add(a, b int) int { return 0 }\n",
		"end/add.go":   "package x\n\nfunc Add(a, b int) int { return a + b }\n",
		"checks/add_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n" +
			"\tif s := Add(1, 2); s != 3 {\n\t\tt.Errorf(\"the sum is %d\", s)\n\t}\n}\n",
		File: list,
	}
	for name, text := range files {
		for _, change := range changes {
			old, now, _ := strings.Cut(change, "->")
			text = strings.Replace(text, old, now, 1)
		}
		testkit.Must(t, write(filepath.Join(root, "04-x", name), []byte(text)))
	}
	all, err := Load(root)
	testkit.Must(t, err)
	return Course{All: all, Workspace: Workspace{Root: root, Work: filepath.Join(root, "work"), Now: time.Now},
		Judge: Judge{Root: root, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")}}
}

func TestTheLaw(t *testing.T) {
	for name, test := range map[string]struct{ change, want string }{
		"holds":                                  {"", ""},
		"a check that shows nothing":             {"s != 3->s > 9", "the check passes on the starter"},
		"a starter that does not compile":        {"return 0 }->return zero }", "undefined: zero"},
		"a starter that fails for another cause": {"the sum is 0\"->no sum\"", `must fail for "no sum"`},
		"a solution that fails":                  {"return a + b }->return b + b }", "exercise 04.1, wrong answer"},
		"a wrong answer that passes":             {"new: a - b->new: b + a", "wrong: minus: the check passes on it"},
		"a wrong answer that gets two hints":     {"says: the sum is 2->says: the sum", `is recognised as ["minus" "twice"]`},
		"a wrong answer that gets none":          {"says: the sum is -1->says: the product", "is recognised as []"},
	} {
		t.Run(name, func(t *testing.T) {
			c := small(t, test.change)
			n, err := c.Verify(t.Context(), c.All, func(string, ...any) {})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if want := (Counts{Exercises: 1, Starters: 1, Solutions: 1, Wrong: 2, Jumps: 1}); test.want == "" &&
				n != want {
				t.Errorf("counted %+v, want %+v", n, want)
			}
		})
	}
}

// TestAHintAfterACheckThatDidNotFail: after a pass it is the next exercise, and after a compile error this error.
func TestAHintAfterACheckThatDidNotFail(t *testing.T) {
	c := small(t)
	e := c.All[0]
	_, err := c.Put(e, map[string][]byte{"add.go": []byte("package x\n\nfunc Add(a, b int) int { return zero }\n")})
	testkit.Must(t, err)
	r, err := c.Check(t.Context(), e)
	testkit.Must(t, err)
	passed := Judgement{Own: []Result{{Verdict: "passed"}}}
	for want, report := range map[string]Judgement{
		"does not compile, so no check ran. The first message of the compiler:\n  work/04-x/add.go:3:33: undefined: zero\n" +
			"The compiler does not know zero.": r,
		"04.1 has passed its check, so it needs no hint.": passed,
		"": {Own: []Result{{Verdict: "failed", What: "expected 3; but the sum is 0"}}},
	} {
		testkit.Must(t, c.Judged(e, State{Current: e.ID, Passed: map[string]string{}}, "", report))
		s, err := c.State()
		testkit.Must(t, err)
		if text, ok := c.NoHint(e, s); !strings.Contains(text, want) || ok != (want != "") {
			t.Errorf("%q, %v; want %q", text, ok, want)
		}
	}
	if text, ok := c.NoHint(e, State{}); ok {
		t.Errorf("before a check: %q", text)
	}
}

func TestTheHintThatFitsComesFirst(t *testing.T) {
	c := small(t)
	e := c.All[0]
	files, err := e.Wrong[0].apply(e,
		map[string][]byte{"add.go": []byte("package x\n\nfunc Add(a, b int) int { return a + b }\n")})
	testkit.Must(t, err)
	if _, err := c.Put(e, files); err != nil {
		t.Fatal(err)
	}
	r, err := c.Check(t.Context(), e)
	if err != nil || r.Passed() {
		t.Fatalf("%+v, %v", r, err)
	}
	testkit.Must(t, c.Judged(e, State{Current: e.ID, Passed: map[string]string{}}, "", r))
	_, err = c.Put(e, map[string][]byte{"add.go": []byte("package x\n")}) // a hint is about the check, not about later files
	testkit.Must(t, err)
	s, err := c.State()
	testkit.Must(t, err)
	general := []string{"A nudge: plus", "Why: plus is +", "The line:\nreturn a + b"}
	exact := []string{"Minus is not plus.", "The solution has these lines there:\n  a + b"}
	for name, ladder := range map[string][]string{"": general, s.Wrong: exact, "a mistake of old": general} {
		for n := range len(ladder) + 1 {
			want, isLast := ladder[min(n, len(ladder)-1)], n >= len(ladder)-1
			s.Wrong, s.Hints = name, n
			if text, last := c.Hint(e, s); !strings.Contains(text, want) || last != isLast {
				t.Errorf("%q: hint %d is %q (the last: %v), want %q", name, n, text, last, want)
			}
		}
	}
}

// TestAMovedCheckout: a reader renames the folder of the workshop, and continues.
func TestAMovedCheckout(t *testing.T) {
	c := small(t)
	if _, err := c.Goto(c.All[0], Always); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "elsewhere")
	testkit.Must(t, os.Rename(c.Root, moved))
	c.Root, c.Judge.Root, c.Work = moved, moved, filepath.Join(moved, "work")
	r, err := c.Check(t.Context(), c.All[0])
	if err != nil || !strings.Contains(r.Failure(), "the sum is 0") {
		t.Errorf("%v: %s", err, r.Failure())
	}
}

// TestAHostileAnswer leaves a process in another session, prints without end, and fails.
func TestAHostileAnswer(t *testing.T) {
	hostile := `import ("os"; "os/exec")

func Add(a, b int) int {
	cmd := exec.Command("sh", "-c", "setsid sleep 300 & "+
		"yes | head -c 50000000; yes | tr -d '\\n' | head -c 50000000; echo")
	cmd.Stdout = os.Stdout
	_ = cmd.Run()
	return 0
}`
	c := small(t, "func Add(a, b int) int { return 0 }->"+hostile)
	t.Setenv("EXERCISE_TEST", t.TempDir())
	c.Judge.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	e := c.All[0]
	if _, err := c.Goto(e, Always); err != nil {
		t.Fatal(err)
	}
	verdicts, err := c.Judge.Test(t.Context(), e, c.Dir(e))
	if err != nil || len(verdicts) != 1 {
		t.Fatal(verdicts, err)
	}
	if v := verdicts[0]; v.Passed() || len(v.What) > 10_000 || !strings.Contains(v.What, "lines are left out") ||
		!strings.Contains(v.What, "the sum is 0") {
		t.Errorf("%s, %d bytes: %.300s", v.Verdict, len(v.What), v.What)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		if strings.Contains(string(data), "EXERCISE_TEST="+os.Getenv("EXERCISE_TEST")) && filepath.Dir(file) !=
			fmt.Sprintf("/proc/%d", os.Getpid()) {
			t.Errorf("%s is left", file)
		}
	}
}
