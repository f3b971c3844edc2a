package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// name is the first argument of the first process of a pod, by which the executable file recognizes it. The process
	// list also shows this name.
	name = "lab-pod"
	// checkName is that of the program of Check.
	checkName = "lab-pod-check"
)

// init makes this process the first process of a pod when New has prepared it. Every program that imports this package,
// tests included, can thus start a pod, without another file to install.
func init() {
	if len(os.Args) == 0 || os.Args[0] != name && os.Args[0] != checkName {
		return
	}
	if os.Args[0] == checkName {
		os.Exit(0)
	}
	runtime.LockOSThread() // the program inherits the capabilities of this thread, which it gives up
	for fd := 3; fd <= 5; fd++ {
		syscall.CloseOnExec(fd)
	}
	describe, reports := os.NewFile(3, "description"), os.NewFile(4, "reports")
	send := json.NewEncoder(reports)
	end, err := serve(describe, os.NewFile(5, "network"), func(pid int) error { return send.Encode(message{PID: pid}) })
	if err != nil {
		_ = send.Encode(message{Error: err.Error()})
		os.Exit(1)
	}
	_ = send.Encode(message{End: end})
	os.Exit(0) // the kernel ends the others
}

// serve makes the pod, runs the program, and returns how it ended.
func serve(describe io.ReadCloser, network *os.File, began func(pid int) error) (*End, error) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGPIPE) // a caught signal is reset for the program; an ignored signal would stay ignored
	var d description
	if err := json.NewDecoder(describe).Decode(&d); err != nil {
		return nil, fmt.Errorf("read the description of a pod: %w", err)
	}
	if err := errors.Join(describe.Close(), unix.Sethostname([]byte(d.Pod.Name))); err != nil {
		return nil, fmt.Errorf("name a pod: %w", err)
	}
	if err := makeNetwork(d.Pod); err != nil {
		return nil, fmt.Errorf("make the network of a pod: %w", err)
	}
	if err := makeRoot(d); err != nil {
		return nil, fmt.Errorf("make the files of a pod: %w", err)
	}
	conn, err := handOut(d.Pod, network)
	if err != nil {
		return nil, fmt.Errorf("make the network of a pod: %w", err)
	}
	if err := giveUp(); err != nil {
		return nil, fmt.Errorf("give up the capabilities of a pod: %w", err)
	}
	program := &exec.Cmd{Path: d.Program.Path, Args: d.Program.Args, Env: d.Program.Env, Dir: d.Program.Dir,
		Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := program.Start(); err != nil {
		return nil, err
	}
	other := &commands{program: d.Program, ends: map[int]chan syscall.WaitStatus{}}
	go other.answerAll(conn)
	if err := began(program.Process.Pid); err != nil {
		return nil, err
	}
	return other.reap(program.Process.Pid)
}

// handOut sends the listener at the address of the API server.
func handOut(p Pod, network *os.File) (*net.UnixConn, error) {
	defer network.Close()
	c, err := net.FileConn(network)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", p.Server.String())
	if err != nil {
		return nil, err
	}
	defer l.Close() // the other process has a copy
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return c.(*net.UnixConn), send(c.(*net.UnixConn), file, nil)
}

// dial sends a connection to a port, or the error.
func dial(to *net.UnixConn, port int) error {
	c, err := net.DialTimeout("tcp", loopback(port), dialing)
	if err != nil {
		return send(to, nil, err)
	}
	defer c.Close() // the other process has a copy
	file, err := c.(*net.TCPConn).File()
	if err != nil {
		return send(to, nil, err)
	}
	defer file.Close()
	return send(to, file, nil)
}

// giveUp removes all capabilities from what this thread starts.
func giveUp() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // a kernel may have fewer
			return err
		}
	}
	return errors.Join(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// reap waits for the program, and for the commands and the orphans of the pod meanwhile.
func (c *commands) reap(program int) (*End, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && pid != program:
			c.ended(pid, status)
		case err != nil:
			return nil, fmt.Errorf("wait for the program: %w", err)
		case status.Signaled():
			return &End{Code: -1, Signal: status.Signal()}, nil
		default:
			return &End{Code: status.ExitStatus()}, nil
		}
	}
}
