package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/process"
)

func (c *Cluster) logFile(name string) string { return filepath.Join(c.dir(), "logs", name+".log") }

// mark is a digest of the program, the flags, the ports and the files with which a component is started. A component
// that runs with another mark must be restarted.
func (c *Cluster) mark(p component) string {
	sum := sha256.New()
	fmt.Fprintln(sum, p.args, c.ports, auditPolicy, stages)
	if program, err := os.Stat(filepath.Join(c.bin, p.name)); err == nil {
		fmt.Fprintln(sum, program.Size(), program.ModTime().UnixNano())
	}
	for _, name := range slices.Sorted(maps.Keys(authorities)) {
		authority, _ := os.ReadFile(filepath.Join(c.dir(), "pki", name+".crt"))
		sum.Write(authority)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

// start runs a component, unless it runs, in a separate session, so that it outlives this program and its terminal.
func (c *Cluster) start(p component) error {
	if c.pid(p.name) != 0 {
		return nil
	}
	held, err := c.takeLock(p.name)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer held.Close()
	log, err := os.OpenFile(c.logFile(p.name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for fd := 3; fd < 1024; fd++ { // an open file of our caller, such as a lock, would stay open as long as the cluster
		syscall.CloseOnExec(fd)
	}
	cmd := exec.Command(filepath.Join(c.bin, p.name), p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.dir(), log, log, []*os.File{held}
	// The component gets nothing of the reader's environment: ETCD_… and KWOK_… are settings, HOME holds configuration.
	cmd.Env = []string{"HOME=" + c.dir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w (fix: %s)", p.name, err, c.Fixes.Programs)
	}
	id, err := process.Of(cmd.Process.Pid)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil // the log has the reason
	}
	if err == nil {
		err = json.NewEncoder(held).Encode(pidFile{id, c.mark(p)})
	}
	if err != nil { // without a record no later command could end it
		err = errors.Join(fmt.Errorf("record the process of %s: %w", p.name, err), cmd.Process.Kill())
	}
	go func() { _ = cmd.Wait() }() // reaps the process when it dies while this program runs
	return err
}

// takeLock takes the lock of a component that does not run, and removes the number of an earlier process from the file.
// Another command that only checks may hold the lock for a moment.
func (c *Cluster) takeLock(name string) (held *os.File, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err = poll(ctx, 5*time.Millisecond, func() error {
		held, err = lock.Try(c.pidFile(name))
		if err != nil && !errors.Is(err, lock.ErrHeld) {
			return fatal{err}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.pidFile(name), err)
	}
	return held, held.Truncate(0)
}

// stop ends a component with SIGTERM, after the grace period with SIGKILL, and returns when the component is gone.
func (c *Cluster) stop(name string, grace time.Duration) error {
	r, ok := c.running(name)
	if !ok {
		return nil
	}
	signal := syscall.SIGTERM
	if grace == 0 {
		signal = syscall.SIGKILL
	}
	if err := r.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s (process %d): %w", name, r.PID, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+10*time.Second)
	defer cancel()
	killAt := time.Now().Add(grace)
	return poll(ctx, 20*time.Millisecond, func() error {
		if held, err := lock.Held(c.pidFile(name)); err == nil && !held {
			return nil
		}
		if time.Now().After(killAt) {
			_ = r.Signal(syscall.SIGKILL)
		}
		return fmt.Errorf("%s (process %d) does not end", name, r.PID)
	})
}

// stopAll ends all components without a grace period.
func (c *Cluster) stopAll() error {
	for _, p := range slices.Backward(c.components()) {
		if err := c.stop(p.name, 0); err != nil {
			return err
		}
	}
	return nil
}

// stopOutdated stops the components that run with another program, or with other flags, ports or certificates, than
// start would use now.
func (c *Cluster) stopOutdated() error {
	for _, p := range slices.Backward(c.components()) {
		if r, ok := c.running(p.name); ok && r.Mark != c.mark(p) {
			if err := c.stop(p.name, 5*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastWords returns the end of a component's log, printable: its last messages, without the traces of a panic.
func (c *Cluster) lastWords(name string) string {
	data, err := os.ReadFile(c.logFile(name))
	if err != nil {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool {
		return line == "" || line[0] == '\t' || strings.HasPrefix(line, "goroutine ") ||
			strings.HasSuffix(line, ")") && !strings.HasPrefix(line, "panic:")
	})
	return output.Lines(strings.Join(lines[max(0, len(lines)-3):], "\n"))
}

// poll calls try at the given interval until try returns nil. When ctx ends, poll returns try's last error.
func poll(ctx context.Context, every time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil || errors.As(err, new(fatal)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(every):
		}
	}
}

// fatal marks an error that waiting cannot fix.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// endStrays kills the strays and returns when they are gone.
func (c *Cluster) endStrays() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return poll(ctx, 20*time.Millisecond, func() (err error) {
		for _, stray := range c.strays() {
			err = errors.Join(fmt.Errorf("process %d of this cluster does not end", stray.PID), err)
			_ = stray.Signal(syscall.SIGKILL)
		}
		return err
	})
}

// strays returns the processes of this cluster that no .pid file records: its folder was removed while they ran, or the
// disk was full when they started. User, PID namespace, program and command line prove that they belong to this
// cluster.
func (c *Cluster) strays() []process.Identity {
	programs, known := []string{}, map[int]bool{}
	for _, p := range c.components() {
		program := filepath.Join(c.bin, p.name)
		programs = append(programs, program)
		if target, err := filepath.EvalSymlinks(program); err == nil {
			programs = append(programs, target)
		}
		known[c.pid(p.name)] = true
	}
	found := process.Own(func(command string) bool {
		starts := func(program string) bool { return strings.HasPrefix(command, program+" ") }
		return slices.ContainsFunc(programs, starts) && strings.Contains(command, "="+c.dir()+"/")
	})
	return slices.DeleteFunc(found, func(p process.Identity) bool {
		return known[p.PID] || !slices.Contains(programs, p.Executable)
	})
}
