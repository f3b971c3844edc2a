package pod

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// commands are the programs that run beside the program of the pod for a short time, such as probes.
type commands struct {
	program Container

	mu   sync.Mutex // held while a command starts, so that its end is not missed
	ends map[int]chan syscall.WaitStatus
}

// answerAll answers requests of the lab, until the lab cannot send another.
func (c *commands) answerAll(conn *net.UnixConn) {
	runtime.LockOSThread() // a command inherits the capabilities of this thread, which it gives up
	if giveUp() != nil {
		return
	}
	for requests := json.NewDecoder(conn); ; {
		var r request
		if requests.Decode(&r) != nil {
			return
		}
		answer := func() error { return dial(conn, r.Port) }
		if len(r.Command) > 0 {
			answer = func() error { return c.run(conn, r.Command) }
		}
		if answer() != nil {
			return
		}
	}
}

// run starts a command, and sends a connection with its output. The last line is its exit code.
func (c *commands) run(to *net.UnixConn, command []string) error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return send(to, nil, err)
	}
	outer, inner := os.NewFile(uintptr(pair[0]), "result"), os.NewFile(uintptr(pair[1]), "output")
	defer outer.Close() // the other process has a copy
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.program.Env, c.program.Dir, inner, inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Path, err = c.find(command[0]); err != nil {
		_ = inner.Close()
		return send(to, nil, err)
	}
	cmd.Err = nil // that of a search in the environment of this process
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		_ = inner.Close()
		return send(to, nil, err)
	}
	end := make(chan syscall.WaitStatus, 1)
	c.ends[cmd.Process.Pid] = end
	go sendEnd(end, cmd.Process.Pid, inner)
	return send(to, outer, nil)
}

// sendEnd writes the exit code of a command. It kills a command that takes too long.
func sendEnd(end <-chan syscall.WaitStatus, pid int, to *os.File) {
	defer to.Close()
	select {
	case status := <-end:
		fmt.Fprintf(to, "\n%d\n", status.ExitStatus())
	case <-time.After(commandTime):
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it has not been reaped
	}
	_ = unix.Shutdown(int(to.Fd()), unix.SHUT_RDWR) // its children may have the output open
}

// ended notes the end of a process.
func (c *commands) ended(pid int, status syscall.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end, ok := c.ends[pid]; ok {
		end <- status
		delete(c.ends, pid)
	}
}

// find returns the path of a command, by the PATH of the program.
func (c *commands) find(command string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil
	}
	for _, setting := range c.program.Env {
		if dirs, ok := strings.CutPrefix(setting, "PATH="); ok {
			for dir := range strings.SplitSeq(dirs, ":") {
				if info, err := os.Stat(dir + "/" + command); err == nil && info.Mode().IsRegular() {
					return dir + "/" + command, nil
				}
			}
		}
	}
	return "", syscall.ENOENT
}
