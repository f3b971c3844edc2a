// Package supervisor runs programs that must not outlive this process: a learner's program, a program that the lab
// examines, or a background block of a page. It limits the resources of such a program, and ends it together with every
// process that it has started.
//
// Between this process and the program is a supervisor: a second process of this executable file, in a separate
// session. It holds one end of a pipe. When this process ends, for whatever reason, the pipe is closed, and the
// supervisor ends the program. On Linux the supervisor is a subreaper: a descendant whose parent has ended becomes its
// child, in any session or process group, so no descendant escapes. A program may kill its supervisor: this process is
// a subreaper, too, and ends the rest. Other systems lack this function: there, the supervisor ends the descendants
// that the process table still shows and the program's process group.
//
// In a pod, the program has a PID namespace, whose first process is between the supervisor and the program.
package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/pod"
	identity "example.com/operator-workshop/scripts/examine/process"
)

// Limits apply to a program together with every process that it has started. Zero means no limit.
type Limits struct {
	// Memory is the resident memory in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Processes is the maximum number of processes at once.
	Processes int `json:"processes,omitempty"`
	// Time is how long the program may run.
	Time time.Duration `json:"time,omitempty"`
}

// Usual limits are far above the needs of an operator, and below a load that makes a laptop unusable.
var Usual = Limits{Memory: 4 << 30, Processes: 256}

// A Command is a program to run.
type Command struct {
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	// Env is the whole environment.
	Env []string `json:"env"`
	Dir string   `json:"dir,omitempty"`
	// Output receives the program's output, stdout and stderr in the order in which they are printed.
	Output io.Writer `json:"-"`
	Limits Limits    `json:"limits"`
	// Pod, when it is set, is where the program runs: see pod.Check.
	Pod *pod.Pod `json:"pod,omitempty"`
}

// A Child is a started program, in a separate session and process group.
type Child struct {
	path    string
	pid     int
	control *os.File
	cmd     *exec.Cmd
	network *pod.Network // nil outside a pod
	ended   chan struct{}
	exit    Exit

	closing sync.Once
}

// An Exit describes the end of a process.
type Exit struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int `json:"code"`
	// Signal is 0 when the process ended by itself.
	Signal syscall.Signal `json:"signal,omitempty"`
	// CPU is the processor time that it used.
	CPU time.Duration `json:"cpu,omitempty"`
	// Limit is a sentence about the limit that the process exceeded; empty when it exceeded no limit.
	Limit string `json:"limit,omitempty"`
	// At is when the process was reaped.
	At time.Time `json:"-"`
}

func (e Exit) String() string {
	switch {
	case e.Limit != "":
		return "was ended: " + e.Limit
	case e.Signal != 0:
		return fmt.Sprintf("ended by %v", e.Signal)
	}
	return fmt.Sprintf("ended with code %d", e.Code)
}

// A message is from a supervisor: the first has PID or Error, the second has Exit. The end of the pipe means that no
// process is left.
type message struct {
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
	Exit  *Exit  `json:"exit,omitempty"`
}

// Start starts a program.
func Start(c Command) (*Child, error) {
	self, err := identity.Executable()
	if err != nil {
		return nil, err
	}
	theirs, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, theirReports, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirs.Close(), control.Close())
	}
	p := &Child{path: c.Path, control: control, ended: make(chan struct{})}
	if err := adopt(); err != nil {
		return nil, errors.Join(err, theirs.Close(), control.Close(), reports.Close(), theirReports.Close())
	}
	inherited := []*os.File{theirs, theirReports}
	if c.Pod != nil {
		var inner *os.File
		if p.network, inner, err = pod.NewNetwork(); err != nil {
			return nil, errors.Join(err, theirs.Close(), control.Close(), reports.Close(), theirReports.Close())
		}
		inherited = append(inherited, inner)
	}
	p.cmd = &exec.Cmd{Path: self, Args: []string{name}, Env: []string{}, Stdout: c.Output, Stderr: c.Output,
		ExtraFiles: inherited, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay: time.Second} // a process that could not be ended may hold the output open
	err = supervisors.start(p.cmd)
	for _, file := range inherited {
		_ = file.Close() // when the supervisor is killed now, this process must notice it
	}
	if err != nil {
		return nil, errors.Join(err, control.Close(), reports.Close())
	}
	var first message
	from := json.NewDecoder(reports)
	if err = json.NewEncoder(control).Encode(c); err == nil {
		err = from.Decode(&first)
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("start %s: its supervisor was killed", c.Path)
	}
	if err == nil && first.Error != "" {
		err = errors.New(first.Error)
	}
	if err != nil {
		p.close()
		return nil, errors.Join(err, p.gone(), reports.Close())
	}
	p.pid = first.PID
	go p.wait(from, reports)
	return p, nil
}

// wait records how the program ends, and closes ended when every process that it had started is gone.
func (p *Child) wait(from *json.Decoder, reports io.Closer) {
	var last message
	if err := from.Decode(&last); err != nil || last.Exit == nil {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // the supervisor was killed: only the process group is left
		last.Exit = &Exit{Code: -1, Signal: syscall.SIGKILL}
	}
	p.exit = *last.Exit
	p.exit.At = time.Now()
	_ = from.Decode(&last) // the end of the pipe
	_ = p.gone()           // the message has the result
	p.close()
	_ = reports.Close()
	if p.network != nil {
		_ = p.network.Close()
	}
	close(p.ended)
}

// gone waits for the supervisor, and ends what a supervisor that was killed has left.
func (p *Child) gone() error {
	err := p.cmd.Wait()
	supervisors.remove(p.cmd.Process.Pid)
	if err != nil {
		sweep()
	}
	return err
}

// close asks the supervisor to end everything.
func (p *Child) close() { p.closing.Do(func() { _ = p.control.Close() }) }

// PID returns the process number, which is also that of its group.
func (p *Child) PID() int { return p.pid }

// Network returns the way into the pod of the process; nil when it does not run in a pod.
func (p *Child) Network() *pod.Network { return p.network }

// Ended returns a channel that is closed when the process and every process that it had started are gone and reaped.
func (p *Child) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process exists. A paused process counts as running.
func (p *Child) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Asleep reports whether every thread of the process and of its descendants waits for a timer or for input. A process that
// waits for a processor, because the machine is busy, is not asleep. Asleep reports false on a system that does not show
// the states of threads.
func (p *Child) Asleep() bool { return p.Running() && asleep(p.pid) }

// Exit waits for the end of the process and describes it.
func (p *Child) Exit() Exit {
	<-p.ended
	return p.exit
}

// Signal sends a signal to the process group. For a process that is gone it returns os.ErrProcessDone.
func (p *Child) Signal(s syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("signal %s: %w", p.path, os.ErrProcessDone)
	}
	err := syscall.Kill(-p.pid, s)
	if errors.Is(err, syscall.ESRCH) {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", p.path, err)
	}
	return nil
}

// Kill ends the process as a crash does, and returns when it and every process that it had started are gone. The Exit
// of a process that has ended already does not change.
func (p *Child) Kill() Exit {
	_ = p.Signal(syscall.SIGKILL)
	p.close()
	return p.Exit()
}

// Terminate sends a signal, and SIGKILL after the grace period. Exit.Signal has the signal that ended the process when
// it did not end by itself.
func (p *Child) Terminate(s syscall.Signal, grace time.Duration) Exit {
	_ = p.Signal(s)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
	}
	return p.Exit()
}

// Run runs a program to its end. When ctx ends, the program gets SIGINT, and SIGKILL after ten seconds.
func Run(ctx context.Context, c Command) (Exit, error) {
	p, err := Start(c)
	if err != nil {
		return Exit{}, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.Terminate(syscall.SIGINT, 10*time.Second)
	}
	return p.Exit(), ctx.Err()
}
