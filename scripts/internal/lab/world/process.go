package world

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Program is how an operator is started.
type Program struct {
	// Name in reports.
	Name string
	// Path of the executable file.
	Path string
	Args []string
	// Env is set besides PATH, HOME (a folder of the world), TMPDIR and KUBECONFIG; nothing else of this
	// process's environment is handed on.
	Env []string
	// Kubeconfig is the value of KUBECONFIG.
	Kubeconfig string
}

// A Process is one life of a program, in a process group of its own.
type Process struct {
	Program Program
	// Started is when.
	Started time.Time

	world *World
	cmd   *exec.Cmd
	words output
	ended chan struct{}
	end   Exit
}

// An Exit is how a process ended.
type Exit struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int
	// Signal is 0 when the process ended by itself.
	Signal syscall.Signal
	// At is when it was reaped.
	At time.Time
	// CPU is the processor time that it used.
	CPU time.Duration
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by %v", e.Signal)
	}
	return fmt.Sprintf("ended with code %d", e.Code)
}

// output collects what a process prints; it is read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Run starts a program. It is killed when the world ends.
func (w *World) Run(program Program) (*Process, error) {
	p := &Process{Program: program, world: w, ended: make(chan struct{})}
	p.cmd = exec.Command(program.Path, program.Args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = w.Dir, &p.words, &p.words
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.Dir, "TMPDIR=" + w.Dir,
		"KUBECONFIG=" + program.Kubeconfig}, program.Env...)
	p.cmd.WaitDelay = time.Second // for a child of its own that keeps the output open
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p, nil
}

// live starts the process and waits for its end, on a thread that lasts as long: Linux takes the end of
// the thread that started a process for the end of its parent.
func (p *Process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.Started = time.Now()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // what it says is in ProcessState
	state := p.cmd.ProcessState
	p.end = Exit{Code: state.ExitCode(), At: time.Now(), CPU: state.UserTime() + state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.end.Signal = status.Signal()
	}
	close(p.ended)
}

// PID is the process number, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is what the process has printed, stdout and stderr in the order in which they came.
func (p *Process) Output() string { return p.words.String() }

// Ended is closed when the process is gone and reaped.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running tells whether the process lives. One that is stopped lives.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Exit says how the process ended. It waits for that.
func (p *Process) Exit() Exit {
	<-p.ended
	return p.end
}

// Signal sends a signal to the process and all its children. One that is gone is an error,
// os.ErrProcessDone.
func (p *Process) Signal(s syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("signal %s: %w", p.Program.Name, os.ErrProcessDone)
	}
	err := syscall.Kill(-p.PID(), s)
	if errors.Is(err, syscall.ESRCH) {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", p.Program.Name, err)
	}
	return nil
}

// Kill ends the process as a crash does, and returns when it is gone and reaped. A process that is gone
// already stays as it ended.
func (p *Process) Kill() Exit {
	_ = p.Signal(syscall.SIGKILL)
	return p.Exit()
}

// Terminate ends the process as Kubernetes does: SIGTERM, and SIGKILL after the grace period. Exit.Signal
// tells which of them it was when the process did not end by itself.
func (p *Process) Terminate(grace time.Duration) Exit {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
	}
	return p.Exit()
}

// Pause stops the process: it is there and does nothing.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Restart kills the process if it lives, and starts the program again.
func (p *Process) Restart() (*Process, error) {
	p.Kill()
	return p.world.Run(p.Program)
}
