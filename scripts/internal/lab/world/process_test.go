package world

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// child is what the tests of processes run: this program once more. It counts, until it is told to end.
func child() {
	if os.Getenv("LAB_TEST_CHILD") == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	silent := os.Getenv("LAB_TEST_CHILD") == "silent" // a broken pipe would end it
	if !silent {
		greet()
	}
	stop := make(chan os.Signal, 1)
	if os.Getenv("LAB_TEST_CHILD") == "polite" {
		signal.Notify(stop, syscall.SIGTERM)
	}
	for i := 0; ; i++ {
		select {
		case <-stop:
			fmt.Fprintln(os.Stderr, "ends")
			os.Exit(3)
		case <-time.After(10 * time.Millisecond):
			if !silent {
				fmt.Println(i)
			}
		}
	}
}

func greet() {
	fmt.Println("KUBECONFIG", os.Getenv("KUBECONFIG"), "HOME", os.Getenv("HOME"), "SECRET", os.Getenv("SECRET"))
}

func startChild(t *testing.T, kind string) *Process {
	t.Helper()
	p, err := w.Run(Program{Name: kind, Path: os.Args[0], Env: []string{"LAB_TEST_CHILD=" + kind}, Kubeconfig: "/k"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	eventually(t, "it counts", func() bool { return strings.Contains(p.Output(), "\n1\n") })
	return p
}

func TestProcessEnds(t *testing.T) {
	t.Setenv("SECRET", "of the reader")
	polite := startChild(t, "polite")
	if want := "KUBECONFIG /k HOME " + w.Dir + " SECRET \n"; !strings.HasPrefix(polite.Output(), want) {
		t.Errorf("it sees %q, want %q", polite.Output(), want)
	}
	if exit := polite.Terminate(10 * time.Second); exit.Code != 3 || exit.Signal != 0 || exit.String() != "ended with code 3" ||
		!strings.HasSuffix(polite.Output(), "ends\n") {
		t.Errorf("it %v: %q", exit, polite.Output())
	}
	if exit := startChild(t, "stubborn").Terminate(50 * time.Millisecond); exit.Signal != syscall.SIGKILL || exit.Code != -1 {
		t.Errorf("a process that does not want to end %v", exit)
	}
	p := startChild(t, "killed")
	if exit := p.Kill(); exit.Signal != syscall.SIGKILL || p.Running() {
		t.Errorf("a killed process %v", exit)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a process that is gone: %v", err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID())); err == nil {
		t.Error("it was not reaped")
	}
	again, err := p.Restart()
	if err != nil || again.PID() == p.PID() || !again.Running() {
		t.Errorf("restart: %v", err)
	}
	again.Kill()
	if _, err := w.Run(Program{Name: "none", Path: filepath.Join(w.Dir, "none")}); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestProcessPauses(t *testing.T) {
	p := startChild(t, "paused")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	before := ""
	eventually(t, "it does nothing more", func() bool {
		now := p.Output()
		still := now == before
		before = now
		time.Sleep(30 * time.Millisecond)
		return still
	})
	if !p.Running() {
		t.Error("a paused process is said to be gone")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return len(p.Output()) > len(before) })
	_ = p.Pause()
	if exit := p.Kill(); exit.Signal != syscall.SIGKILL {
		t.Errorf("killed while it was paused, it %v", exit)
	}
}
