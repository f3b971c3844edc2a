package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/pod"
)

const (
	// name is the first argument of a supervisor, by which the executable file recognises that it is a supervisor. The
	// process list also shows this name: a user who kills the lab by its name does not kill the supervisors.
	name = "lab-supervisor"
	// interval is the time between two looks at the process table, each of which takes a millisecond or two.
	interval = 200 * time.Millisecond
	// few processes end without priority.
	few = 16
	// patience is how long a process may take to end after SIGKILL. A process of another user, or a process that waits
	// for a broken disk, never ends.
	patience = 20 * time.Second
)

// init makes this process a supervisor when Start has started it. Every program that imports this package, tests
// included, can thus start a supervisor, without another file to install.
func init() {
	if len(os.Args) == 0 || os.Args[0] != name {
		return
	}
	runtime.LockOSThread() // the program ends with this thread, which lasts as long as the process
	runtime.GOMAXPROCS(1)  // the supervisor runs before all others, and leaves them a processor
	control, reports := os.NewFile(3, "control"), os.NewFile(4, "reports")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	if err := serve(control, reports); err != nil {
		_ = json.NewEncoder(reports).Encode(message{Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// A family is the program and every process that it has started.
type family struct {
	// root is the program, or the first process of its pod.
	root int
	pod  *pod.Init // nil outside a pod
	// exited receives the Exit of the program.
	exited chan Exit
}

// serve starts the program that control describes, and returns when none of its processes are left.
func serve(control, reports *os.File) error {
	// A caught signal is reset for the program; an ignored signal would stay ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGPIPE)
	if err := errors.Join(adopt(), mark()); err != nil {
		return err
	}
	var c Command
	from := json.NewDecoder(control)
	if err := from.Decode(&c); err != nil {
		return fmt.Errorf("read the command: %w", err)
	}
	f := &family{exited: make(chan Exit, 1)}
	start := f.start
	if c.Pod != nil {
		start = f.startPod
	}
	pid, err := start(c)
	if err != nil {
		return err
	}
	raisePriority()
	send := json.NewEncoder(reports)
	_ = send.Encode(message{PID: pid}) // a process that is gone needs no message
	go f.reap()
	asked := make(chan struct{})
	go func() {
		_ = from.Decode(&c) // nothing follows the command: this reads the end of the pipe
		close(asked)
	}()
	exit, limit, members := f.watch(c.Limits, asked)
	if limit == "" {
		lowerPriority()
	}
	if exit == nil {
		f.end(members)
		exit = f.killed(limit)
	}
	_ = send.Encode(message{Exit: exit})
	f.end(nil)
	return nil
}

// start starts the program, and returns its number.
func (f *family) start(c Command) (pid int, err error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	f.root = cmd.Process.Pid
	setKernelLimits(f.root)
	return f.root, nil
}

// startPod starts the program in its pod, and returns its number outside the pod.
func (f *family) startPod(c Command) (pid int, err error) {
	network := os.NewFile(5, "network")
	defer network.Close()
	program := pod.Container{Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: c.Env, Dir: c.Dir}
	if f.pod, err = pod.New(*c.Pod, program, network); err != nil {
		return 0, err
	}
	f.pod.Stdout, f.pod.Stderr = os.Stdout, os.Stderr
	dieWithParent(f.pod.SysProcAttr)
	if err := f.pod.Start(); err != nil {
		return 0, err
	}
	f.root = f.pod.Process.Pid
	setKernelLimits(f.root)
	return f.pod.Run()
}

// watch returns the Exit of a program that has ended by itself, or nil when the supervisor must end it: on request, or
// because its members have exceeded a limit.
func (f *family) watch(limits Limits, asked <-chan struct{}) (exit *Exit, limit string, members []process) {
	began, ticker := time.Now(), time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case e := <-f.exited:
			return &e, "", nil
		case <-asked:
			return nil, "", nil
		case <-ticker.C:
			members = f.members()
			if limit := limits.exceeded(members, time.Since(began)); limit != "" {
				return nil, limit, members
			}
		}
	}
}

// A process is a line of the process table.
type process struct {
	pid, parent, group int
	// memory is the resident memory in bytes.
	memory int64
	// cpu is the processor time that it used.
	cpu time.Duration
}

// CPU returns the processor time that a process and its descendants have used. It falls when one of them ends.
func CPU(pid int) (used time.Duration) {
	all := table()
	for _, p := range all {
		if p.pid == pid {
			used += p.cpu
		}
	}
	for _, p := range descendants(all, pid) {
		used += p.cpu
	}
	return used
}

// exceeded returns a sentence about the exceeded limit, and the mistake to look for in the program.
func (l Limits) exceeded(members []process, took time.Duration) string {
	var memory int64
	for _, m := range members {
		memory += m.memory
	}
	switch {
	case l.Processes > 0 && len(members) > l.Processes:
		return fmt.Sprintf("it had %d processes at once, and may have %d; look for a loop that starts programs and does "+
			"not wait for their end", len(members), l.Processes)
	case l.Memory > 0 && memory > l.Memory:
		return fmt.Sprintf("it used %.1f GiB of memory, and may use %.1f GiB; look for a loop that keeps what it reads",
			float64(memory)/(1<<30), float64(l.Memory)/(1<<30))
	case l.Time > 0 && took > l.Time:
		return fmt.Sprintf("it did not end within %s; look for a loop, or a wait, that never ends", l.Time)
	}
	return ""
}

// reap records the end of each child of this process, until there are no more.
func (f *family) reap() {
	for f.wait(0) {
	}
}

// wait records the end of a process, and reports whether there may be others.
func (f *family) wait(options int) bool {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	pid, err := syscall.Wait4(-1, &status, options, &usage)
	if err != nil {
		return err == syscall.EINTR // or ECHILD: no process is left
	}
	if pid == f.root {
		exit := Exit{Code: status.ExitStatus(), CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		if status.Signaled() {
			exit.Signal = status.Signal()
		}
		if f.pod != nil {
			if end := f.pod.End(); end != nil { // nil when the first process of the pod was killed
				exit.Code, exit.Signal = end.Code, end.Signal
			}
		}
		f.exited <- exit
	}
	return true
}

// killed returns the Exit of a program that end has ended.
func (f *family) killed(limit string) *Exit {
	exit := Exit{Code: -1, Signal: syscall.SIGKILL}
	select {
	case exit = <-f.exited:
	default: // not even SIGKILL has ended it
	}
	exit.Limit = limit
	return &exit
}

// end ends the known members, then all members. It signals process groups, not processes: the kernel does that in one
// step, in which no member of the group can start another process. A process that moves to another group meanwhile is
// found in the next turn.
func (f *family) end(members []process) {
	for begin := time.Now(); time.Since(begin) < patience; {
		groups := map[int]bool{f.root: true}
		for _, m := range members {
			groups[m.group] = true
		}
		for group := range groups {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
		if members = f.members(); len(members) > few {
			raisePriority()
		}
		if !f.wait(syscall.WNOHANG) && len(members) == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond) // they need the processor to end
	}
}

// descendants returns the children of a process, their children, and so on.
func descendants(all []process, of int) (some []process) {
	children := map[int][]process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	some = children[of]
	for n := 0; n < len(some); n++ { // some grows meanwhile
		some = append(some, children[some[n].pid]...)
	}
	return some
}
