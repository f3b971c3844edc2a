// Package process identifies processes. A number is not enough: the system gives it to another process when the first
// process has ended, and each PID namespace (a container has one) numbers its processes separately.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// An Identity is the record of a process in a file, so that a later command finds this process or none.
type Identity struct {
	PID int `json:"pid"`
	// Host is the name of the machine or container. It is only for messages, because names change.
	Host string `json:"host"`
	// Boot is the kernel's name for the time since its start. The first PID namespace has one number on every Linux.
	Boot string `json:"boot"`
	// Namespace is the PID namespace. It is empty on a system without PID namespaces, such as macOS.
	Namespace string `json:"namespace,omitempty"`
	// Start is when the process started: clock ticks since the boot on Linux, a date with seconds elsewhere.
	Start string `json:"start"`
	// Executable is the file that the process runs.
	Executable string `json:"executable"`
}

// Of returns the identity of a process that this process can see. The error is os.ErrProcessDone when it has ended.
func Of(pid int) (Identity, error) {
	id, err := here()
	if err != nil {
		return id, err
	}
	id.PID = pid
	if !hasProc() {
		return id, id.readPS()
	}
	return id, id.readProc()
}

// here returns the part of an identity that all processes of a PID namespace share.
func here() (id Identity, err error) {
	if id.Host, err = os.Hostname(); err != nil {
		return id, err
	}
	if !hasProc() {
		boot, err := exec.Command("sysctl", "-n", "kern.bootsessionuuid").Output()
		id.Boot = string(bytes.TrimSpace(boot))
		return id, err
	}
	// A new PID namespace with the old /proc shows other processes under the numbers of this namespace.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return id, errors.New("/proc shows the processes of another PID namespace: mount /proc in this one")
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, err
	}
	id.Boot = string(bytes.TrimSpace(boot))
	id.Namespace, err = os.Readlink("/proc/self/ns/pid")
	return id, err
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// readProc completes an identity on Linux. A zombie process has no executable.
func (id *Identity) readProc() (err error) {
	dir := fmt.Sprintf("/proc/%d/", id.PID)
	fields, err := Stat(id.PID)
	if err != nil {
		return err
	}
	const start = 19
	if len(fields) <= start {
		return fmt.Errorf("%sstat has %d fields", dir, len(fields))
	}
	id.Start = fields[start]
	if id.Namespace, err = os.Readlink(dir + "ns/pid"); err != nil {
		return ended(err)
	}
	id.Executable, err = os.Readlink(dir + "exe")
	id.Executable = strings.TrimSuffix(id.Executable, " (deleted)") // a new build replaces the file while it runs
	return ended(err)
}

// Stat returns the fields of a process in /proc after the name of its program. The error is os.ErrProcessDone when the
// process has ended.
func Stat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, ended(err)
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses.
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])), nil
}

// Numbers returns the numbers of all processes in /proc.
func Numbers() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func ended(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return os.ErrProcessDone
	}
	return err
}

// readPS completes an identity on a system without /proc, where a start time has a resolution of one second.
func (id *Identity) readPS() error {
	cmd := exec.Command("ps", "-ww", "-o", "lstart=", "-o", "comm=", "-p", strconv.Itoa(id.PID))
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC") // the date is the same for every reader
	out, err := cmd.Output()
	fields := strings.Fields(string(out))
	const date = 5 // Wed Nov 25 17:02:36 2026
	if len(fields) <= date {
		if exit := new(exec.ExitError); err == nil || errors.As(err, &exit) {
			err = os.ErrProcessDone
		}
		return err
	}
	id.Start, id.Executable = strings.Join(fields[:date], " "), strings.Join(fields[date:], " ")
	return err
}

// IsValid reports whether an identity that was read from a file is complete.
func (id Identity) IsValid() bool {
	return id.PID > 1 && id.Boot != "" && id.Start != "" && id.Executable != ""
}

// IsLocal reports whether the process is, or was, in this PID namespace: its number has a meaning here.
func (id Identity) IsLocal() bool {
	local, err := here()
	return err == nil && id.Boot == local.Boot && id.Namespace == local.Namespace
}

// IsGone reports whether the process, whose lock is free, has certainly ended, without a look at the process: this
// kernel keeps the locks of all its PID namespaces, and all processes of a machine end when it restarts.
func (id Identity) IsGone() bool {
	local, err := here()
	return err == nil && (id.Boot == local.Boot || id.Host == local.Host)
}

// IsRunning reports whether the process runs: number, PID namespace, start time and executable agree.
func (id Identity) IsRunning() bool {
	now, err := Of(id.PID)
	now.Host = id.Host
	return err == nil && id.IsValid() && now == id
}

// Signal sends a signal to the process, and never to another process that has got its number meanwhile.
func (id Identity) Signal(s os.Signal) error {
	if !id.IsLocal() {
		return fmt.Errorf("process %d is one of %s, in another PID namespace", id.PID, id.Host)
	}
	p, err := os.FindProcess(id.PID) // on Linux a handle: from here on it stands for one process
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	if !id.IsRunning() {
		return os.ErrProcessDone
	}
	return p.Signal(s)
}

// Own returns the processes of this user in this PID namespace whose command line, with its words joined by blanks,
// matches. Processes of other users do not count, because another user can give a process any command line.
func Own(match func(command string) bool) (found []Identity) {
	for pid, command := range commands() {
		if !match(command) {
			continue
		}
		if id, err := Of(pid); err == nil && id.IsLocal() {
			found = append(found, id)
		}
	}
	return found
}

// commands returns the command lines of all processes of this user.
func commands() map[int]string {
	lines := map[int]string{}
	if !hasProc() {
		out, _ := exec.Command("ps", "-axww", "-o", "pid=", "-o", "ruid=", "-o", "command=").Output()
		for line := range strings.Lines(string(out)) {
			var pid, uid int
			if n, _ := fmt.Sscan(line, &pid, &uid); n == 2 && uid == os.Getuid() {
				_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				_, lines[pid], _ = strings.Cut(strings.TrimSpace(rest), " ")
			}
		}
		return lines
	}
	for _, pid := range Numbers() {
		if !isOwn(pid) {
			continue
		}
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			lines[pid] = strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return lines
}

// isOwn reports whether a process belongs to this user. The owner of its folder in /proc is root for some processes of
// other users.
func isOwn(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "Uid:" {
			return fields[1] == strconv.Itoa(os.Getuid()) && fields[2] == strconv.Itoa(os.Geteuid())
		}
	}
	return false
}

// Executable returns the file that this process runs: on Linux also when another file has replaced it meanwhile.
func Executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
