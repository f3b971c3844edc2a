//go:build !linux

package supervisor

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// This system has no equivalent of these functions.
func adopt() error                       { return nil }
func mark() error                        { return nil }
func dieWithParent(*syscall.SysProcAttr) {}
func setKernelLimits(int)                {}
func raisePriority()                     {}
func lowerPriority()                     {}

// asleep reports false: this system does not show the states of threads.
func asleep(int) bool { return false }

// orphansOf finds none: an orphan is not a child of this process.
func orphansOf([]process, map[int]bool) []process { return nil }

// members returns the program, its descendants, and the processes of its group. It does not find a descendant in
// another group whose parent has ended.
func (f *family) members() (some []process) {
	all := table()
	known := map[int]bool{}
	for _, p := range descendants(all, f.root) {
		known[p.pid] = true
	}
	for _, p := range all {
		if p.pid == f.root || p.group == f.root || known[p.pid] {
			some = append(some, p)
		}
	}
	return some
}

// table asks ps, the only way without a C library here.
func table() (all []process) {
	// The error is ignored, because reap may have taken the exit status.
	out, _ := exec.Command("ps", "-axo", "pid=,ppid=,pgid=,rss=,state=,time=").Output()
	for line := range strings.Lines(string(out)) {
		var p process
		var state, used string
		if n, _ := fmt.Sscan(line, &p.pid, &p.parent, &p.group, &p.memory, &state, &used); n == 6 && state[0] != 'Z' {
			p.memory <<= 10
			minutes, seconds, _ := strings.Cut(used, ":")
			p.cpu, _ = time.ParseDuration(minutes + "m" + seconds + "s")
			all = append(all, p)
		}
	}
	return all
}
