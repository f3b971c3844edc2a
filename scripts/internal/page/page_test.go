package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// write makes a page in a new folder. ”' stands for a fence.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"README.md": strings.ReplaceAll(text, "'''", "```"),
		"crd.yaml":  "kind: A\nspec:\n  one: 1\n  two: 2\n",
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return filepath.Join(dir, "README.md")
}

func runPage(t *testing.T, r Runner, text string) (Counts, string, error) {
	t.Helper()
	page, err := Parse(write(t, text))
	if err != nil {
		return Counts{}, "", err
	}
	var out bytes.Buffer
	r.W = &out
	if r.Env == nil {
		r.Env = os.Environ()
	}
	counts, err := r.Run(t.Context(), page)
	return counts, out.String(), err
}

// The pages of the workshop, which `make verify` runs, show the usual blocks. These are rare.
func TestPagesThatAreTrue(t *testing.T) {
	for name, test := range map[string]struct {
		page string
		want Counts
	}{
		"an output": {"'''sh\necho a; echo b >&2\n'''\ntext\n'''console\na\nb\n'''",
			Counts{Executed: 1, Compared: 1}},
		"a line with a gap": {
			"'''sh\necho one two three\n'''\n'''console\none … three\n'''", Counts{Executed: 1, Compared: 1}},
		"an output with the progress of a build": {"'''sh\necho 'building kind' >&2; echo '  compiling packages: 1 of 2, 3s'; " +
			"echo 'built into bin/: 1 of 1, in 3s'; echo a\n'''\n'''console\na\n'''", Counts{Executed: 1, Compared: 1}},
		"the output of an expected failure": {
			"'''sh fails\necho no; exit 3\n'''\n'''console\nno\n'''", Counts{Executed: 1, Compared: 1}},
		"variables and directory carry over": {"'''sh\nx=\"a b\"; export Y=2; mkdir d; cd d\n'''\n'''sh\necho \"$x $Y " +
			"${PWD##*/}\"\n'''\n'''console\na b 2 d\n'''", Counts{Executed: 2, Compared: 1}},
		"variables of a block that fails": {"'''sh fails\nx=1\nfalse\n'''\n'''sh\n[ $x = 1 ]\n'''", Counts{Executed: 2}},
		"two ages side by side":           {"'''sh\necho 12s 3m\n'''\n'''console\n1d 2h5m\n'''", Counts{Executed: 1, Compared: 1}},
		"parts of a file": {"'''yaml file=crd.yaml part\nkind: A\n…\n  two: 2\n'''\n'''yaml " +
			"file=crd.yaml part\n…\none: 1\n…\n'''", Counts{Included: 2}},
		"a block inside a list": {
			"- item\n\n  '''sh\n  echo a\n  '''\n  '''console\n  a\n  '''", Counts{Executed: 1, Compared: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts, _, err := runPage(t, Runner{}, test.page)
			if err != nil || counts != test.want {
				t.Fatalf("got %v, %v; want %v", counts, err, test.want)
			}
		})
	}
}

func TestPagesThatLie(t *testing.T) {
	for name, test := range map[string]struct{ page, want string }{
		"a command that fails": {
			"one\n\n'''sh\necho out; false\n'''", "README.md:4: the command failed (exit status 1)\n$ echo out; false\nout"},
		"a command in the middle fails":     {"'''sh\nfalse\ntrue\n'''", "the command failed"},
		"the first of a pipe fails":         {"'''sh\nfalse | cat\n'''", "the command failed"},
		"an expected failure that succeeds": {"'''sh fails\ntrue\n'''", "the command succeeded, the page says that it fails"},
		"another output":                    {"'''sh\necho a\n'''\n'''console\nb\n'''", "-b\n+a"},
		"an output with more lines":         {"'''sh\nseq 3\n'''\n'''console\n1\n2\n'''", "+3"},
		"no output":                         {"'''sh\ntrue\n'''\n'''console\na\n'''", "-a"},
		"lines in another order":            {"'''sh\nseq 9\n'''\n'''console contains\n7\n3\n'''", "lacks a line"},
		"a background process that dies": {"'''sh background=op until=ready\necho oops; exit 1\n'''\n'''sh " +
			"stop=op\ntrue\n'''", `op ended before it printed "ready"`},
		"a background process gone early": {
			"'''sh background=op until=bye\necho bye\n'''\n'''sh stop=op\nsleep 0.5\n'''", "ended by itself"},
		"a background process never ended": {"'''sh background=op\nsleep 1\n'''", "background=op is never ended"},
		"a stop without a background":      {"'''sh stop=op\ntrue\n'''", "no block before it has background=op"},
		"an unknown word":                  {"'''sh quickly\ntrue\n'''", `unknown word "quickly"`},
		"a word with an empty value":       {"'''sh within=\ntrue\n'''", `unknown word "within="`},
		"a word that is no duration":       {"'''sh within=soon\ntrue\n'''", "invalid duration"},
		"a word of another kind of block": {
			"'''console fails\nx\n'''", `the word "fails" means nothing on a console block`},
		"a block that nothing claims":       {"'''yaml\na: b\n'''", "neither executed, compared, included nor skipped"},
		"a fence without a language":        {"'''\ntext\n'''", "a fence without a language"},
		"an indented block":                 {"text\n\n    kubectl get pods\n", "README.md:3: an indented block"},
		"an output without a command":       {"'''console\na\n'''", "right before it"},
		"an output of a background process": {"'''sh background=x\nsleep 1\n'''\n'''console\na\n'''", "right before it"},
		"another file":                      {"'''yaml file=crd.yaml\nkind: B\n'''", "-kind: A"},
		"no such file":                      {"'''yaml file=none.yaml\nkind: B\n'''", "none.yaml"},
		"no part of the file":               {"'''yaml file=crd.yaml part\ntwo: 2\none: 1\n'''", "not a run of whole lines"},
		"parts in another order": {
			"'''yaml file=crd.yaml part\ntwo: 2\n…\none: 1\n'''", "not a run of whole lines"},
		"a part that is not there": {"'''yaml file=crd.yaml part\nkind: A\n…\nthree: 3\n'''", "not a run of whole lines"},
		"half a line of the file":  {"'''yaml file=crd.yaml part\nind: A\n'''", "not a run of whole lines"},
		"a part without a file":    {"'''yaml part skip=x\nx\n'''", "needs file=PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := runPage(t, Runner{}, test.page)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v\nwant an error with %q", err, test.want)
			}
		})
	}
}

func TestEveryWrongBlockIsNamedAtOnce(t *testing.T) {
	_, _, err := runPage(t, Runner{}, "'''sh a\n'''\n'''yaml\n'''\n'''sh b\n'''")
	if got := strings.Count(err.Error(), "README.md:"); got != 3 {
		t.Fatalf("%d blocks named in:\n%v", got, err)
	}
}

func TestAnInterruptedPageLeavesNoProcess(t *testing.T) {
	// The last process is like a page inside a page: it ends its child, which is in a separate process group.
	page, err := Parse(write(t, "'''sh background=op\necho $$ >pid.background; exec sleep 1000\n'''\n"+
		"'''sh stop=op\nset -m\nsleep 1000 &\necho $! >pid.nested; trap \"kill $!; exit 1\" TERM\n"+
		"set +m; sleep 1000 & echo $! >pid.child; echo $$ >pid.block; wait\n'''"))
	testkit.Must(t, err)
	dir := filepath.Dir(page.Path)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(dir, "pid.block")); err == nil {
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err = Runner{Env: os.Environ(), W: &bytes.Buffer{}}.Run(ctx, page)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, name := range []string{"background", "nested", "child", "block"} {
		gone(t, dir, name)
	}
}

// TestMain runs the tests, or acts as a program that runs a page.
func TestMain(m *testing.M) {
	path := os.Getenv("PAGE_TEST")
	if path == "" {
		os.Exit(m.Run())
	}
	page, err := Parse(path)
	if err == nil {
		_, err = Runner{Env: os.Environ(), W: os.Stdout}.Run(context.Background(), page)
	}
	fmt.Println(err)
}

// A page that is killed cannot end its background blocks.
func TestAKilledPageLeavesNoBackgroundBlock(t *testing.T) {
	path := write(t, "'''sh background=op until=begun\nset -m; sleep 1000 & echo $! >pid.nested; echo $$ >pid.background\n"+
		"echo begun; wait\n'''\n'''sh stop=op\nkill -9 $PPID\n'''")
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), "PAGE_TEST="+path)
	var exit *exec.ExitError
	if out, err := runner.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	for _, name := range []string{"background", "nested"} {
		gone(t, filepath.Dir(path), name)
	}
}

// gone waits until the process whose number a file has is gone.
func gone(t *testing.T, dir, name string) {
	t.Helper()
	var pid int
	data, err := os.ReadFile(filepath.Join(dir, "pid."+name))
	if _, scanErr := fmt.Sscan(string(data), &pid); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	for deadline := time.Now().Add(time.Minute); runs(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("the %s process %d still runs", name, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
			break
		}
	}
}

// runs reports whether a process has not ended. An orphan that has ended stays in the process table until the first
// process of the system reaps it.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == nil && (err != nil || !strings.Contains(string(stat), ") Z "))
}

func TestPlayShowsProseCommandsAndOutput(t *testing.T) {
	_, out, err := runPage(t, Runner{Play: true},
		"# A `title`\n\nSome *prose*, a [link](page.md) and\n**`code`**. <!-- by hand -->Not this.<!-- end --> This.\n\n"+
			"'''sh within=1s\n# This may take a moment: run it again.\necho $((20+1))\n'''\n'''console\n21\n'''")
	testkit.Must(t, err)
	if want := "\nA TITLE\n\nSome prose, a link and code. This.\n\n$ echo $((20+1))\n21\n"; out != want {
		t.Fatalf("got %q\nwant %q", out, want)
	}
}

// TestPlayShowsWhatABackgroundProcessPrints: the new output after each command, and the rest when the process is
// stopped.
func TestPlayShowsWhatABackgroundProcessPrints(t *testing.T) {
	_, out, err := runPage(t, Runner{Play: true},
		"'''sh background=op until=ready\ntrap 'seq 25; exit' INT\necho ready; while :; do sleep 0.01; done\n'''\n"+
			"'''sh stop=op\necho now\n'''\n")
	testkit.Must(t, err)
	for _, want := range []string{"done\nop | ready\n", "$ echo now\nnow\nop | … 5 lines …\nop | 6\n", "op | 25\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestListsKeepTheirMarkers(t *testing.T) {
	_, out, err := runPage(t, Runner{Play: true}, "- a\n- b\n\n1. one\n2. two\n")
	if want := "\n- a\n\n- b\n\n1. one\n\n2. two\n"; err != nil || out != want {
		t.Fatalf("%v, got %q", err, out)
	}
}

func TestProseFitsTheTerminal(t *testing.T) {
	_, out, err := runPage(t, Runner{Play: true}, strings.Repeat("a word ", 100))
	if err != nil || strings.Count(out, "word") != 100 {
		t.Fatalf("%v, %q", err, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > width+1 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}

func TestTablesAreShownAsWritten(t *testing.T) {
	const table = "| a | `b` |\n|---|---|\n| 1 | 2 |"
	_, out, err := runPage(t, Runner{Play: true}, "text\n\n"+table+"\n\nmore\n")
	if want := "\ntext\n\n" + table + "\n\nmore\n"; err != nil || out != want {
		t.Fatalf("%v, got %q", err, out)
	}
}

func TestAPageCanEndAtAHeading(t *testing.T) {
	page, err := Parse(write(t, "# A\n\n'''sh\ntrue\n'''\n\n## B\n\n'''sh\nfalse\n'''"))
	testkit.Must(t, err)
	if got := Plan(page.Until("B")).Executed; got != 1 {
		t.Errorf("until B: %d blocks", got)
	}
	if got := Plan(page.Until("C")).Executed; got != 2 {
		t.Errorf("until a heading that is not there: %d blocks", got)
	}
}

func TestReasonsForSkippingArePrinted(t *testing.T) {
	_, out, err := runPage(t, Runner{}, "'''sh skip=\"needs a phone\"\nx\n'''")
	if err != nil || !strings.Contains(out, "needs a phone") {
		t.Fatalf("%v, printed %q", err, out)
	}
}

func TestAPausePrecedesEachCommand(t *testing.T) {
	awaited := 0
	dir := t.TempDir()
	pause := func(context.Context) error {
		if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != (awaited > 0) {
			t.Errorf("before wait %d the first command ran: %t", awaited, err == nil)
		}
		awaited++
		return nil
	}
	page := "'''sh\ntouch '" + dir + "/ran'\n'''\n'''sh skip=\"no\"\nfalse\n'''\n'''sh\ntrue\n'''"
	if _, _, err := runPage(t, Runner{Play: true, Pause: pause}, page); err != nil || awaited != 2 {
		t.Errorf("awaited %d times, %v", awaited, err)
	}
	pause = func(context.Context) error { return context.Canceled }
	if _, _, err := runPage(t, Runner{Play: true, Pause: pause}, page); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// A paragraph in Japanese has no blanks.
func TestProseWithoutBlanksFitsTheTerminal(t *testing.T) {
	lines := strings.Split(wrap(strings.Repeat("コントローラーは子を作ります。", 20)), "\n")
	for _, line := range lines {
		if characters := len([]rune(line)); characters > width/2 {
			t.Errorf("a line has %d characters of two columns", characters)
		}
	}
	if len(lines) < 5 {
		t.Errorf("%d lines", len(lines))
	}
}
