package process

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// start runs a program that waits until its input ends.
func start(t *testing.T, cmd *exec.Cmd) Identity {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = cmd.Wait() })
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAProcessGetsSignalsOnlyWhenAllOfItsIdentityAgrees(t *testing.T) {
	cmd := exec.Command("cat")
	id := start(t, cmd)
	if !id.IsValid() || !id.IsLocal() || !id.IsRunning() {
		t.Fatalf("a process that runs: %+v", id)
	}
	for what, change := range map[string]func(*Identity){
		"another boot":          func(id *Identity) { id.Boot = "00000000-0000-0000-0000-000000000000" },
		"another PID namespace": func(id *Identity) { id.Namespace = "pid:[1]" },
		"another start":         func(id *Identity) { id.Start += "0" },
		"another executable":    func(id *Identity) { id.Executable += "x" },
		"no start":              func(id *Identity) { id.Start = "" },
	} {
		other := id
		change(&other)
		if err := other.Signal(syscall.SIGKILL); err == nil || other.IsRunning() {
			t.Errorf("%s: the signal was sent, or it counts as running: %v", what, err)
		}
	}
	if !id.IsRunning() {
		t.Fatal("it got a signal for another process")
	}
	if err := id.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := id.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) || id.IsRunning() {
		t.Errorf("a signal for a process that has ended: %v", err)
	}
	if _, err := Of(id.PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the identity of a process that has ended: %v", err)
	}
}

func TestAnotherHostNameIsTheSameProcess(t *testing.T) {
	id := start(t, exec.Command("cat"))
	id.Host = "renamed"
	if !id.IsRunning() || !id.IsGone() {
		t.Error("a laptop in another network has lost its processes")
	}
	id.Boot = "another kernel"
	if id.IsGone() {
		t.Error("a process of another machine is gone without a look at it")
	}
}

func TestOwnSkipsOtherUsers(t *testing.T) {
	const mark = "a-mark-of-this-test"
	match := func(command string) bool { return command == "sh -c read line "+mark }
	own := start(t, exec.Command("sh", "-c", "read line", mark))
	if found := Own(match); len(found) != 1 || found[0] != own {
		t.Errorf("processes %+v, expected %+v", found, own)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	other := exec.Command("sh", "-c", "read line", mark)
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	start(t, other)
	if found := Own(match); len(found) != 1 || found[0] != own {
		t.Errorf("processes %+v, expected %+v", found, own)
	}
}

// The method for macOS works on every system that has ps.
func TestIdentityFromPS(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("cat")
	want := start(t, cmd)
	id := Identity{PID: want.PID}
	if err := id.readPS(); err != nil || len(strings.Fields(id.Start)) != 5 || id.Executable != "cat" &&
		id.Executable != want.Executable {
		t.Errorf("identity %+v: %v", id, err)
	}
	second := Identity{PID: want.PID}
	t.Setenv("TZ", "Asia/Tokyo")
	if err := second.readPS(); err != nil || second != id {
		t.Errorf("in another time zone %+v became %+v: %v", id, second, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := id.readPS(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that has ended: %v", err)
	}
}
