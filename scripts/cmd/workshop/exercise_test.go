package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// learner is a reader with her own checkout: its files are links to the files of this checkout, work/ and .workshop/
// are new.
type learner struct {
	t    *testing.T
	root string
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	if testing.Short() {
		t.Skip("it judges real programs")
	}
	real, err := filepath.Abs(filepath.Join("..", "..", ".."))
	testkit.Must(t, err)
	l := &learner{t: t, root: t.TempDir()}
	link := func(from, to string, skip ...string) {
		entries, err := os.ReadDir(from)
		testkit.Must(t, err)
		for _, entry := range entries {
			if !strings.Contains(" "+strings.Join(skip, " ")+" ", " "+entry.Name()+" ") {
				testkit.Must(t, os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())))
			}
		}
	}
	link(real, l.root, "bin", "work", ".workshop", "out", ".git")
	testkit.Must(t, os.Mkdir(filepath.Join(l.root, "bin"), 0o755))
	link(filepath.Join(real, "bin"), filepath.Join(l.root, "bin"), "workshop", ".lock")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", filepath.Join(l.root, "bin",
		"workshop"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(l.root, "bin", "workshop"), "down")
		down.Dir = l.root
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return l
}

func (l *learner) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.t.Context(), filepath.Join(l.root, "bin", "workshop"), args...)
	cmd.Dir = l.root
	return cmd
}

// does runs a command and wants parts of its output, and success or failure.
func (l *learner) does(ok bool, command string, want ...string) {
	l.t.Helper()
	begin := time.Now()
	out, err := l.command(strings.Fields(command)...).CombinedOutput()
	l.t.Logf("$ %s (%.1f s)\n%s", command, time.Since(begin).Seconds(), out)
	if (err == nil) != ok {
		l.t.Fatalf("%s: %v", command, err)
	}
	for _, part := range want {
		if !strings.Contains(string(out), part) {
			l.t.Errorf("%s does not say %q", command, part)
		}
	}
	for line := range strings.Lines(string(out)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 && !strings.HasPrefix(command, "solution") {
			l.t.Errorf("%s prints %d columns: %s", command, n, line)
		}
	}
}

// answers runs a command in a terminal, answers its question, and wants parts of its output, and success or failure.
func (l *learner) answers(ok bool, command, answer string, want ...string) {
	l.t.Helper()
	cmd := l.command(strings.Fields(command)...)
	terminal, err := pty.Start(cmd)
	testkit.Must(l.t, err)
	defer terminal.Close()
	if _, err := terminal.WriteString(answer + "\n"); err != nil {
		l.t.Fatal(err)
	}
	out, _ := io.ReadAll(terminal) // Linux reports an error at the end of a terminal
	if err := cmd.Wait(); (err == nil) != ok {
		l.t.Fatalf("%s, answered %q: %v\n%s", command, answer, err, out)
	}
	for _, part := range want {
		if !strings.Contains(string(out), part) {
			l.t.Errorf("%s does not say %q:\n%s", command, part, out)
		}
	}
}

// edits replaces a text in one of her files.
func (l *learner) edits(path, old, now string) {
	l.t.Helper()
	path = filepath.Join(l.root, path)
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), old) != 1 {
		l.t.Fatalf("%q is not once in %s: %v", old, path, err)
	}
	testkit.Must(l.t, os.WriteFile(path, []byte(strings.Replace(string(data), old, now, 1)), 0o600))
}

func (l *learner) copies(from, to string) {
	l.t.Helper()
	testkit.Write(l.t, filepath.Join(l.root, to), testkit.Read(l.t, filepath.Join(l.root, from)))
}

func TestALearnersSession(t *testing.T) {
	l := newLearner(t)
	const mine, watch = "work/04-controller-runtime/main.go", "\t\tOwns(&corev1.ConfigMap{}).\n"
	l.does(true, "exercise --ex 4.3", "Children that come back", "A user deletes the ConfigMap", mine)
	l.copies("04-controller-runtime/stages/3-own/main.go", mine)
	l.edits(mine, watch, "")
	l.does(false, "check", "failed  behaviour/05-deleted-configmap", "Done:        a user deleted ConfigMap web",
		"Expected:    the ConfigMap is back", "Happened:    ", "got the event ConfigMap web DELETED and sent no request", "Where:       "+mine,
		"make watch EX=04.3", "All details:")
	l.does(true, "watch --ex 04.3", "04.3: failed", "create configmaps web 201 moved", ">>> here it differed: expected that")
	l.does(false, "watch --ex 04.4", "make check EX=04.4")
	l.does(true, "hint", "the cache of your client gets its events")
	l.does(true, "hint", "The solution has these lines there:")
	l.edits(mine, "\t\tOwns(&appsv1.Deployment{}).\n", watch+"\t\tOwns(&appsv1.Deployment{}).\n")
	l.does(true, "check", "passed  behaviour/05-deleted-configmap", "04.3 is done", "Next: 04.4",
		"ConfigMap web DELETED delivered → ")
	l.does(true, "watch --ex 04.3", "04.3: passed", "Service web ADDED delivered")
	l.does(true, "progress", " 1 of ", "next: 04.4")
	l.does(true, "exercise", "04.4", "Your own solution of the exercise before is your starter")
	l.does(false, "solution", "make solution YES=1")
	l.does(true, "solution --yes", "+\treturn ctrl.Result{}, r.updateStatus", "Nothing was written")
	l.does(true, "goto --ex 04.6", "Your files of before are saved in work/.saved/", "Own fields, and no others")
	l.does(true, "reset", "is the starter of 04.6 again")
	l.does(true, "exercise", "You go on with 04.6", "stay as they are")

	l.does(true, "bug --n 1", "bug 1, level 1", "With two MyWebs in my namespace", "read them in this order")
	l.does(true, "progress", "next: 04.6")
	l.does(true, "bug", "bug 1, level 1", "You go on with this one")
	l.does(true, "solution --yes", "all MyWebs select their pods by the same label")
	l.does(true, "exercise", "You go on with 04.6")
}

// TestAReaderRunsHerProgram types the commands that the story of an exercise prints, on the local cluster.
func TestAReaderRunsHerProgram(t *testing.T) {
	l := newLearner(t)
	e := exercise.Exercise{Chapter: "04-controller-runtime", File: "main.go"}
	l.does(true, "exercise --ex 4.2", e.RunCommands()...)
	l.does(true, "up")
	script := `eval "$(bin/workshop env)" &&
` + e.RunCommands()[0] + ` && kubectl wait --for=condition=Established --timeout=2m -f 04-controller-runtime/config/crd &&
` + e.RunCommands()[1] + ` && ` + e.RunCommands()[2]
	ended := l.watched("MyWeb myweb ADDED delivered")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Env = append(os.Environ(), "GOTMPDIR="+t.TempDir()) // `go run` leaves its work folder behind at SIGTERM
	shell.Dir, shell.SysProcAttr = l.root, &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) }
	out, err := shell.StdoutPipe()
	testkit.Must(t, err)
	shell.Stderr = shell.Stdout
	testkit.Must(t, shell.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "Saw MyWeb") {
			cancel() // Ctrl-C
		}
	}
	_ = shell.Wait()
	if !strings.Contains(said.String(), "Saw MyWeb") {
		t.Errorf("the program did not see the MyWeb:\n%s", &said)
	}
	ended()
}

// watched runs `workshop watch` in the background. When the command has printed a text it gets Ctrl-C, which is its
// normal end; ended waits for that end.
func (l *learner) watched(text string) (ended func()) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, filepath.Join(l.root, "bin", "workshop"), "watch")
	cmd.Dir = l.root
	out, err := cmd.StdoutPipe()
	testkit.Must(l.t, err)
	cmd.Stderr = cmd.Stdout
	testkit.Must(l.t, cmd.Start())
	var said strings.Builder // a line is complete when the next record is there: bytes are read
	begun, read := make(chan struct{}), make(chan bool)
	go func() {
		seen, some := false, make([]byte, 4096)
		for err := error(nil); err == nil; {
			var n int
			n, err = out.Read(some)
			if said.Len() == 0 {
				close(begun)
			}
			said.Write(some[:n])
			if !seen && strings.Contains(said.String(), text) {
				seen = true
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}
		read <- seen
	}()
	<-begun
	return func() {
		l.t.Helper()
		defer cancel()
		if seen, err := <-read, cmd.Wait(); !seen || err != nil {
			l.t.Errorf("watch has printed %q: %v; it ended with %v:\n%s", text, seen, err, &said)
		}
	}
}

// interrupted runs a command, sends Ctrl-C when it prints a text, and wants a word about it.
func (l *learner) interrupted(command, at string) {
	l.t.Helper()
	cmd := l.command(strings.Fields(command)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as in a terminal, all of its processes get the signal
	out, err := cmd.StdoutPipe()
	testkit.Must(l.t, err)
	cmd.Stderr = cmd.Stdout
	testkit.Must(l.t, cmd.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), at) {
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				l.t.Error(err)
			}
		}
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(said.String(), "interrupted: run the same command again") {
		l.t.Errorf("%s, interrupted at %q, ended with %v:\n%s", command, at, cmd.ProcessState, &said)
	}
}

func TestGotoAsksBeforeItReplacesFiles(t *testing.T) {
	l := newLearner(t)
	const mine, question = "work/04-controller-runtime/main.go", "Save them in work/.saved, and put the starter there? [y/N]"
	written := func() string {
		data, err := os.ReadFile(filepath.Join(l.root, mine))
		testkit.Must(t, err)
		return string(data)
	}
	l.answers(true, "goto --ex 4.3", "", mine) // an empty folder needs no answer
	l.edits(mine, "package main\n", "package main // of the reader\n")
	before := written()
	l.answers(false, "goto --ex 4.5", "n", question, exercise.ErrNotReplaced.Error())
	l.answers(false, "goto --ex 4.3", "", question, exercise.ErrNotReplaced.Error())
	if written() != before {
		t.Error("a reader who said no has other files")
	}
	l.answers(true, "goto --ex 4.5", "y", question, "Your files of before are saved in work/.saved/")
	saved, _ := filepath.Glob(filepath.Join(l.root, "work/.saved/*/04-controller-runtime/main.go"))
	if len(saved) != 1 {
		t.Fatalf("saved: %v", saved)
	}
	if data, err := os.ReadFile(saved[0]); err != nil || string(data) != before || written() == before {
		t.Errorf("the saved file is %q: %v", data, err)
	}
	l.does(true, "goto --ex 4.6 --yes", "Own fields, and no others")
}

// TestTheWindowCleansUpWhenNothingReadsItsOutput is Ctrl-C in `make open | tee log`: tee ends first.
func TestTheWindowCleansUpWhenNothingReadsItsOutput(t *testing.T) {
	l := newLearner(t)
	cmd := l.command("open", "--port", "0")
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "/enter?key="); {
	}
	testkit.Must(t, out.Close())
	folders := filepath.Join(l.root, ".workshop", "window-*")
	if made, _ := filepath.Glob(folders); len(made) != 1 {
		t.Fatalf("the window has the folders %v", made)
	}
	testkit.Must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	if left, _ := filepath.Glob(folders); len(left) != 0 {
		t.Errorf("%v stays; the window ended with %v", left, cmd.ProcessState)
	}
}

// TestNothingIsLostByCtrlC interrupts a check while it builds, and while its control plane starts; then it kills that
// control plane.
func TestNothingIsLostByCtrlC(t *testing.T) {
	l := newLearner(t)
	const mine = "work/04-controller-runtime/main.go"
	l.does(true, "exercise --ex 4.2", mine)
	before := testkit.Read(t, filepath.Join(l.root, mine))
	l.interrupted("check", "04.2  Children that are created")
	l.interrupted("check", "starting a control plane")
	l.does(false, "check", "failed  behaviour/01-pods-apart", "Where:       "+mine)
	data, err := os.ReadFile(filepath.Join(l.root, ".workshop/lab/cluster/kube-apiserver.pid"))
	testkit.Must(t, err)
	var apiserver struct{ PID int }
	if err := json.Unmarshal(data, &apiserver); err != nil || syscall.Kill(apiserver.PID, syscall.SIGKILL) != nil {
		t.Fatalf("the API server %q is not killed: %v", data, err)
	}
	l.does(false, "check", "starting a control plane", "failed  behaviour/01-pods-apart")
	l.does(false, "check --verbose", "This is what the last check said", "failed  behaviour/01-pods-apart")
	if after, err := os.ReadFile(filepath.Join(l.root, mine)); err != nil || string(after) != before {
		t.Errorf("the reader's file has changed: %v", err)
	}
}

// TestNoStepStandsInACard: below a verdict, a terminal shows a step that it erases, and other output has none.
func TestNoStepStandsInACard(t *testing.T) {
	for isTerminal, want := range map[bool]string{false: "  a: 1 s\n", true: "  a: 1 s\n\r  b: 2 s\x1b[K\r\x1b[K"} {
		var out strings.Builder
		p := checkProgress{out: &out, isTerminal: isTerminal}
		p.waiting("a", time.Second)
		p.verdict.Store(true)
		p.waiting("b", 2*time.Second)
		p.end()
		if out.String() != want {
			t.Errorf("a terminal: %v: %q, want %q", isTerminal, out.String(), want)
		}
	}
}
