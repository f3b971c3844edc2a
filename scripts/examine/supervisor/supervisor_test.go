package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/pod"
)

// TestMain runs the tests, or acts as a program that eats memory, or as a lab that has one program running.
func TestMain(m *testing.M) {
	switch os.Getenv("SUPERVISOR_TEST") {
	case "eat":
		var eaten [][]byte
		for range 20 << 10 {
			eaten = append(eaten, bytes.Repeat([]byte{1}, 1<<20))
		}
		fmt.Println(len(eaten), "MiB eaten")
	case "lab":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		_, err := Run(ctx, Command{Path: os.Args[1], Env: os.Environ(), Output: os.Stdout, Pod: places[os.Args[2]]})
		fmt.Println("the lab:", err)
	default:
		os.Exit(m.Run())
	}
}

// places are where the programs run.
var places = map[string]*pod.Pod{"outside": nil, "in a pod": {Name: "pod", User: 65532,
	Address: netip.MustParseAddr("10.244.0.7"), Server: netip.MustParseAddrPort("10.96.0.1:443")}}

// everywhere runs a test in each place that this system allows.
func everywhere(t *testing.T, test func(t *testing.T, place string)) {
	for place, in := range places {
		t.Run(place, func(t *testing.T) {
			if err := pod.Check(); in != nil && err != nil {
				t.Skip("this system allows no pods: ", err)
			}
			test(t, place)
		})
	}
}

// A crowd has the processes of a test, found by a mark in their environment.
type crowd struct {
	t    *testing.T
	mark string
}

func newCrowd(t *testing.T) crowd {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("only Linux shows the environment of processes")
	}
	c := crowd{t: t, mark: "MARK=" + t.TempDir()}
	t.Cleanup(func() {
		for _, pid := range c.pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return c
}

func (c crowd) env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), c.mark}, more...)
}

func (c crowd) pids() (all []int) {
	for _, p := range table() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if bytes.Contains(environ, []byte(c.mark)) {
			all = append(all, p.pid)
		}
	}
	return all
}

func (c crowd) gone() {
	c.t.Helper()
	if left := c.pids(); len(left) > 0 {
		pids := strings.Trim(fmt.Sprint(left), "[]")
		out, _ := exec.Command("ps", "-o", "pid,ppid,pgid,sid,state,args", "-p", pids).Output()
		c.t.Errorf("%d processes are left:\n%s", len(left), out)
	}
}

// script writes a shell script.
func script(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// leaves starts a process in its group, a process in a separate session, and a process in a session below that session.
// The parents of these processes end.
const leaves = `sleep 300 &
setsid sh -c 'setsid sleep 300 & sleep 300' &
sh -c 'setsid sh -c "trap : INT TERM HUP; sleep 300; sleep 300" &'
`

// TestNothingIsLeft ends programs of several kinds. Two of them double themselves, for twelve generations, so that they
// end even when this test is killed.
func TestNothingIsLeft(t *testing.T) { everywhere(t, nothingIsLeft) }

func nothingIsLeft(t *testing.T, place string) {
	for name, test := range map[string]struct {
		script string
		limits Limits
		env    string
		want   string
	}{
		"a program that leaves others in sessions of their own": {script: leaves + "exit 3", want: "ended with code 3"},
		"one that starts two others and ends, and these do the same": {
			script: "[ ${#1} -lt 12 ] || exec sleep 300\nsetsid $0 1$1 &\nsetsid $0 1$1 &\nexit 3", want: "ended with code 3"},
		"one whose others ignore signals": {script: `trap '' INT TERM HUP; setsid sleep 300 & kill -9 $$`,
			want: "ended by killed"},
		"a fork bomb": {limits: Limits{Processes: 100},
			script: "bomb() { [ ${#1} -lt 12 ] || exec sleep 300; bomb 1$1 | bomb 1$1 & }\nbomb\nsleep 300",
			want:   "was ended: it had .* processes at once, and may have 100"},
		"one in sessions of its own": {limits: Limits{Processes: 100},
			script: "[ ${#1} -lt 12 ] || exec sleep 300\nsetsid $0 1$1 &\nsetsid $0 1$1 &\nsleep 300",
			want:   "was ended: it had .* processes at once, and may have 100"},
		"20 GB of memory": {env: "SUPERVISOR_TEST=eat", limits: Limits{Memory: 200 << 20},
			want: "was ended: it used .* GiB of memory, and may use 0.2 GiB"},
		"memory of many processes": {limits: Limits{Memory: 20 << 20},
			script: "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n" +
				"setsid sh -c 'sleep 300; exit' &\ndone\nwait",
			want: "was ended: it used .* GiB of memory"},
		"a program that never ends": {script: leaves + "while :; do :; done", limits: Limits{Time: 200 * time.Millisecond},
			want: "was ended: it did not end within 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			path := os.Args[0]
			if test.script != "" {
				path = script(t, test.script)
			}
			begin, words := time.Now(), &output.Buffer{}
			exit, err := Run(t.Context(), Command{Path: path, Env: c.env(test.env), Limits: test.limits, Output: words,
				Pod: places[place]})
			if err != nil {
				t.Fatal(err)
			}
			c.gone()
			if !regexp.MustCompile("^" + test.want).MatchString(exit.String()) {
				t.Errorf("it %v, want %s; it printed %s", exit, test.want, words)
			}
			t.Logf("it %v after %v, with %v of processor time", exit, time.Since(begin), exit.CPU)
		})
	}
}

// TestTheLabIsGone interrupts and kills a process that has a program running.
func TestTheLabIsGone(t *testing.T) { everywhere(t, theLabIsGone) }

func theLabIsGone(t *testing.T, place string) {
	for name, end := range map[string]func(lab *exec.Cmd) error{
		"kill -9":              func(lab *exec.Cmd) error { return lab.Process.Kill() },
		"kill -9 of its group": func(lab *exec.Cmd) error { return syscall.Kill(-lab.Process.Pid, syscall.SIGKILL) },
		"Ctrl-C":               func(lab *exec.Cmd) error { return syscall.Kill(-lab.Process.Pid, syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			words := &output.Buffer{}
			lab := exec.Command(os.Args[0], script(t, leaves+"echo begun; sleep 300"), place)
			lab.Env, lab.Stdout, lab.Stderr = c.env("SUPERVISOR_TEST=lab"), words, words
			lab.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := lab.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the program has begun", func() bool { return strings.Contains(words.String(), "begun") })
			if n := len(c.pids()); n < 4 {
				t.Fatalf("there are only %d processes", n)
			}
			if err := end(lab); err != nil {
				t.Fatal(err)
			}
			_ = lab.Wait()
			eventually(t, "all processes are gone", func() bool { return len(c.pids()) == 0 })
		})
	}
}

// TestTheSupervisorIsGone runs a program that kills its supervisor: the program ends with it, and every process that
// the program has started. Another program, its supervisor, and other children of this process are not signalled.
func TestTheSupervisorIsGone(t *testing.T) {
	other, c := newCrowd(t), newCrowd(t)
	beside, err := Start(Command{Path: script(t, leaves+"sleep 300"), Env: other.env()})
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Kill()
	child := exec.Command("setsid", "sh", "-c", "sleep 300 & wait")
	child.Env = other.env()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	const all = 8 // the program beside with what it leaves, and the child with its sleep
	eventually(t, "the others run", func() bool { return len(other.pids()) >= all })
	begin := filepath.Join(t.TempDir(), "begin")
	p, err := Start(Command{Path: script(t, leaves+"until [ -e "+begin+" ]; do sleep 0.01; done\n"+
		"kill -9 $PPID; sleep 300"), Env: c.env()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has started others", func() bool { return len(c.pids()) >= 6 })
	before := other.pids()
	if err := os.WriteFile(begin, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); exit.Signal != syscall.SIGKILL {
		t.Errorf("it %v", exit)
	}
	c.gone()
	after := other.pids() // a program of theirs may have started meanwhile
	signalled := slices.ContainsFunc(before, func(pid int) bool { return !slices.Contains(after, pid) })
	if signalled || !beside.Running() {
		t.Errorf("others were signalled: before %v, after %v", before, after)
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	for name, path := range map[string]string{
		"not there": filepath.Join(t.TempDir(), "none"), "a folder": t.TempDir(),
	} {
		if _, err := Start(Command{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheProgramSees checks that the program sees nothing of the supervisor.
func TestTheProgramSees(t *testing.T) {
	words := &output.Buffer{}
	exit, err := Run(t.Context(), Command{Path: "/bin/sh", Dir: "/", Output: words, Env: []string{"A=b c"},
		Args: []string{"-c", `echo "$A $(pwd) $1"; (: <&3) || echo closed; (: <&4) || echo closed`, "sh", "an argument"}})
	if want := "b c / an argument\n"; err != nil || exit.Code != 0 || !strings.HasPrefix(words.String(), want) ||
		strings.Count(words.String(), "closed") != 2 {
		t.Errorf("it %v, %v: %s", exit, err, words)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}
