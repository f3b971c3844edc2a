package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/internal/lock"
)

// A process is running exactly while someone holds the lock on its .pid file: the file is opened and
// locked here and inherited by the process, so that the kernel drops the lock when it dies, by kill -9
// or with the machine. A process number alone could belong to a stranger by then.

func (c *Cluster) pidFile(name string) string { return filepath.Join(c.dir(), name+".pid") }
func (c *Cluster) logFile(name string) string { return filepath.Join(c.dir(), "logs", name+".log") }

// pid returns the process number of a component, 0 when it does not run.
func (c *Cluster) pid(name string) int {
	if _, err := os.Stat(c.pidFile(name)); err != nil {
		return 0
	}
	f, err := lock.Try(c.pidFile(name))
	if err == nil {
		f.Close()
		return 0
	}
	data, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// start runs a component in a session of its own, so that it outlives this program and its terminal.
func (c *Cluster) start(p component) error {
	held, err := lock.Try(c.pidFile(p.name))
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	log, err := os.OpenFile(c.logFile(p.name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, p.name), p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.dir(), log, log, []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := held.Truncate(0); err != nil {
		return err
	}
	if _, err := held.WriteAt([]byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reaps it when it dies while we look
	return nil
}

// stop ends a component and returns when it is gone: SIGTERM first, SIGKILL after the grace period.
func (c *Cluster) stop(name string, grace time.Duration) error {
	pid := c.pid(name)
	if pid == 0 {
		return nil
	}
	signal := syscall.SIGTERM
	if grace == 0 {
		signal = syscall.SIGKILL
	}
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s (process %d): %w", name, pid, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+10*time.Second)
	defer cancel()
	killAt := time.Now().Add(grace)
	return poll(ctx, 20*time.Millisecond, func() error {
		if c.pid(name) == 0 {
			return nil
		}
		if time.Now().After(killAt) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return fmt.Errorf("%s (process %d) does not end", name, pid)
	})
}

// lastWords returns the end of a component's log: what it said before it died.
func (c *Cluster) lastWords(name string) string {
	data, err := os.ReadFile(c.logFile(name))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// poll calls try at the given interval until it returns nil; when ctx ends it returns try's last error.
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

// fatal marks an error that waiting cannot mend.
type fatal struct{ error }
