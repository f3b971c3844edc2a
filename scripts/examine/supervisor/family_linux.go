package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	identity "example.com/operator-workshop/scripts/examine/process"
)

// adopt makes this process the parent of all descendants whose parent ends.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphaned descendants: %w", err)
	}
	return nil
}

// mark distinguishes the descendants of this supervisor from other children of the process that has started it. The
// kernel has ignored this limit since Linux 2.4.25, descendants inherit it, and only root can raise it.
func mark() error {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // in a process list; without it, the supervisor works as well
	limit := min(marked(0), 1<<30) - 1
	return unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: limit, Max: limit})
}

// marked returns the mark of a process: the smaller, the more supervisors are above it. It is the largest number for a
// process that this user may not examine.
func marked(pid int) uint64 {
	limit := unix.Rlimit{Max: unix.RLIM_INFINITY}
	_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit)
	return limit.Max
}

// orphansOf returns the marked children of this process, except its supervisors, and their descendants.
func orphansOf(all []process, supervisors map[int]bool) (found []process) {
	own := marked(0)
	for _, p := range all {
		if p.parent == os.Getpid() && !supervisors[p.pid] && marked(p.pid) < own {
			found = append(append(found, p), descendants(all, p.pid)...)
		}
	}
	return found
}

// dieWithParent makes the kernel kill the program when the thread that starts it is gone, because then the supervisor
// was killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// spare is how many more threads than now the user of a program may have.
const spare = 2048

// setKernelLimits sets limits that the kernel enforces between two looks at the process table. When the machine has no
// memory left, the kernel ends the program first. For a user other than root the number of threads is limited; the
// kernel counts the threads of all programs of the user.
func setKernelLimits(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	var running, threads uint64
	load, _ := os.ReadFile("/proc/loadavg")
	if n, _ := fmt.Sscanf(string(load), "%f %f %f %d/%d", new(float64), new(float64), new(float64), &running,
		&threads); n < 5 {
		return
	}
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &limit) == nil {
		limit.Cur = min(limit.Cur, threads+spare)
		limit.Max = min(limit.Max, limit.Cur)
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
	}
}

// raisePriority makes all threads of this process run before others, where the system permits it, as it does for root:
// a program that starts processes without end leaves no time for one process of many. Threads and processes inherit the
// priority, so it is raised after the start of the program.
//
// No thread may be left out: Go's threads wait for each other in loops, and a thread with a higher priority than all
// others would take the processor from the thread for which it waits. A thread that was started meanwhile is found in
// the next turn.
func raisePriority() { schedule(unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1}) }

// lowerPriority undoes raisePriority. The kernel removes the files of an ended process from /proc, and repeats that in a
// loop while another thread closes one of them: before all others, the loop would take the processor from that thread, for
// a second.
func lowerPriority() { schedule(unix.SchedAttr{Policy: unix.SCHED_NORMAL}) }

// schedule changes the scheduling of all threads of this process.
func schedule(to unix.SchedAttr) {
	to.Size = unix.SizeofSchedAttr
	for found := true; found; {
		found = false
		threads, _ := os.ReadDir("/proc/self/task")
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			if now, err := unix.SchedGetAttr(id, 0); err != nil || now.Policy == to.Policy {
				continue
			}
			if unix.SchedSetAttr(id, &to, 0) == nil {
				found = true
			}
		}
	}
}

// members returns the descendants of this process. As a subreaper it has no other processes to end.
func (f *family) members() []process {
	return descendants(table(), os.Getpid())
}

// asleep reports whether every thread of a process and of its descendants waits for a timer or for input. A thread that
// runs, or that waits for a processor, is not asleep.
func asleep(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(thread, "stat"))
		state := bytes.LastIndexByte(stat, ')') + len(" S")
		if err != nil || state >= len(stat) || stat[state] != 'S' {
			return false
		}
		children, err := os.ReadFile(filepath.Join(thread, "children"))
		if err != nil {
			return false // it has ended, or the kernel does not list the children
		}
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err != nil || !asleep(n) {
				return false
			}
		}
	}
	return true
}

// tick is the unit of times in /proc: USER_HZ of the kernel's interface, on every architecture that Go supports.
const tick = time.Second / 100

// table reads the process table. A process that ends meanwhile is not in it.
func table() (all []process) {
	for _, pid := range identity.Numbers() {
		fields, err := identity.Stat(pid)
		const parent, group, cpu, resident = 1, 2, 11, 21
		if err != nil || len(fields) <= resident {
			continue
		}
		p := process{pid: pid}
		p.parent, _ = strconv.Atoi(fields[parent])
		p.group, _ = strconv.Atoi(fields[group])
		pages, _ := strconv.ParseInt(fields[resident], 10, 64)
		p.memory = pages * int64(os.Getpagesize())
		for _, field := range fields[cpu : cpu+4] { // in user and system mode, and of children that have ended
			ticks, _ := strconv.ParseInt(field, 10, 64)
			p.cpu += time.Duration(ticks) * tick
		}
		all = append(all, p)
	}
	return all
}
