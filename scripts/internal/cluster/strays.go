package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

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
