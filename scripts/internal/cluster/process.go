package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// running returns the process number of a component and the mark that it was started with. The number
// is 0 when the component does not run.
func (c *Cluster) running(name string) (pid int, mark string) {
	if held, err := lock.Held(c.pidFile(name)); err != nil || !held {
		return 0, ""
	}
	data, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return 0, ""
	}
	if _, err := fmt.Sscan(string(data), &pid, &mark); err != nil {
		return 0, "" // being started, or its number could not be written: then it is a stray
	}
	return pid, mark
}

func (c *Cluster) pid(name string) int {
	pid, _ := c.running(name)
	return pid
}

// mark sums up what a component is started with. One that runs with another mark has to be restarted.
func (c *Cluster) mark(p component) string {
	sum := sha256.New()
	fmt.Fprintln(sum, p.args, c.ports, auditPolicy, stages)
	if program, err := os.Stat(filepath.Join(c.bin, p.name)); err == nil {
		fmt.Fprintln(sum, program.Size(), program.ModTime().UnixNano())
	}
	for _, name := range authorities {
		authority, _ := os.ReadFile(filepath.Join(c.dir(), "pki", name+".crt"))
		sum.Write(authority)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

// start runs a component, unless it runs, in a session of its own, so that it outlives this program
// and its terminal.
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
	cmd := exec.Command(filepath.Join(c.bin, p.name), p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.dir(), log, log, []*os.File{held}
	// Nothing of the reader's environment: ETCD_… and KWOK_… are settings, HOME holds configuration.
	cmd.Env = []string{"HOME=" + c.dir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w (fix: `scripts/workshop tools local`)", p.name, err)
	}
	go func() { _ = cmd.Wait() }() // reaps it when it dies while we look
	if _, err := fmt.Fprintf(held, "%d %s\n", cmd.Process.Pid, c.mark(p)); err != nil {
		return errors.Join(err, cmd.Process.Kill()) // nobody would find it again
	}
	return nil
}

// takeLock takes the lock of a component that does not run, and empties the file of the number that
// an earlier process had. Someone who just looks may hold the lock for a moment.
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

// stopAll ends all components without grace.
func (c *Cluster) stopAll() error {
	for _, p := range slices.Backward(c.components()) {
		if err := c.stop(p.name, 0); err != nil {
			return err
		}
	}
	return nil
}

// stopOutdated stops the components that run with other flags, ports, certificates or another program
// than they would be started with now.
func (c *Cluster) stopOutdated() error {
	for _, p := range slices.Backward(c.components()) {
		if pid, mark := c.running(p.name); pid != 0 && mark != c.mark(p) {
			if err := c.stop(p.name, 5*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastWords returns the end of a component's log: what it said before it died, without the traces of
// a panic.
func (c *Cluster) lastWords(name string) string {
	data, err := os.ReadFile(c.logFile(name))
	if err != nil {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool {
		return line == "" || line[0] == '\t' || strings.HasPrefix(line, "goroutine ") ||
			strings.HasSuffix(line, ")") && !strings.HasPrefix(line, "panic:")
	})
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

// fatal marks an error that waiting cannot fix.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// endStrays kills the strays and returns when they are gone.
func (c *Cluster) endStrays() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return poll(ctx, 20*time.Millisecond, func() (err error) {
		for _, pid := range c.strays() {
			err = errors.Join(fmt.Errorf("process %d of this cluster does not end", pid), err)
			if kill := syscall.Kill(pid, syscall.SIGKILL); errors.Is(kill, syscall.EPERM) {
				return fatal{fmt.Errorf("stop process %d of this cluster: %w", pid, kill)}
			}
		}
		return err
	})
}

// strays returns the processes of this cluster that no .pid file names: its folder was removed while
// they ran, or the disk was full when they started. Their command lines tell that they are ours.
func (c *Cluster) strays() []int {
	known := map[int]bool{}
	for _, p := range c.components() {
		known[c.pid(p.name)] = true
	}
	var found []int
	for pid, command := range commandLines() {
		ours := slices.ContainsFunc(c.components(), func(p component) bool {
			return strings.HasPrefix(command, filepath.Join(c.bin, p.name)+" ")
		})
		if ours && !known[pid] && strings.Contains(command, "="+c.dir()+"/") {
			found = append(found, pid)
		}
	}
	return found
}

// commandLines returns the command line of every process, words joined by blanks. A system that does
// not tell has none.
func commandLines() map[int]string {
	lines := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		var pid int
		data, err := os.ReadFile(file)
		if _, scanErr := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && scanErr == nil {
			lines[pid] = strings.ReplaceAll(string(data), "\x00", " ")
		}
	}
	if len(files) > 0 {
		return lines
	}
	out, _ := exec.Command("ps", "-axww", "-o", "pid=", "-o", "command=").Output()
	for line := range strings.Lines(string(out)) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil {
			_, command, _ := strings.Cut(strings.TrimSpace(line), " ")
			lines[pid] = command
		}
	}
	return lines
}
