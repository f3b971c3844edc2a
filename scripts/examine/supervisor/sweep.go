package supervisor

import (
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A registry has the numbers of the supervisors that this process has started and not waited for.
type registry struct {
	mu   sync.Mutex
	pids map[int]bool
}

var supervisors = registry{pids: map[int]bool{}}

func (r *registry) start(cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		r.pids[cmd.Process.Pid] = true
	}
	return err
}

func (r *registry) remove(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
}

// orphans returns the children of this process that a killed supervisor has left, and their descendants.
func (r *registry) orphans() []process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return orphansOf(table(), r.pids)
}

// sweep ends the orphans in the same way as a supervisor, and reaps those that are children.
func sweep() {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(2 * time.Millisecond) {
		left := supervisors.orphans()
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			_ = syscall.Kill(-p.group, syscall.SIGKILL)
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}
