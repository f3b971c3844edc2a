package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	identity "example.com/operator-workshop/scripts/examine/process"
)

// A description is what the first process of a pod reads.
type description struct {
	Pod     Pod       `json:"pod"`
	Program Container `json:"program"`
	// File is the executable file of the program, without links in its path.
	File string `json:"file"`
}

// A message is from the first process: the first has PID or Error, the second has End.
type message struct {
	// PID is the number of the program in the pod.
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
	End   *End   `json:"end,omitempty"`
}

// An Init is the first process of a pod. The caller sets its output, and starts it before Run.
type Init struct {
	*exec.Cmd
	what    description
	ours    []*os.File // pipes: the description, the reports
	theirs  []*os.File // their other ends, closed when the process has inherited them
	reports *json.Decoder
}

// capabilities are what the first process needs. It does not give them to the program.
var capabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_RESOURCE,
	unix.CAP_SETPCAP}

// New prepares a pod. inner is the file of NewNetwork.
func New(p Pod, program Container, inner *os.File) (*Init, error) {
	self, err := identity.Executable()
	if err != nil {
		return nil, err
	}
	read, describe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, read.Close(), describe.Close())
	}
	one := func(host int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: p.User, HostID: host, Size: 1}}
	}
	cmd := &exec.Cmd{Path: self, Args: []string{name}, Env: []string{}, ExtraFiles: []*os.File{read, write, inner},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, AmbientCaps: capabilities,
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS |
				unix.CLONE_NEWIPC,
			UidMappings: one(os.Geteuid()), GidMappings: one(os.Getegid())}}
	p.Mounts = slices.Clone(p.Mounts)
	for i, m := range p.Mounts {
		p.Mounts[i].Source = resolved(m.Source)
	}
	return &Init{Cmd: cmd, what: description{p, program, resolved(program.Path)}, ours: []*os.File{describe, reports},
		theirs: []*os.File{read, write}, reports: json.NewDecoder(reports)}, nil
}

// resolved follows the links of a path, which would lead elsewhere in the pod. The pod reports a path that does not exist.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil && path != "" {
		return to
	}
	return path
}

// Start starts the first process, which waits for Run.
func (p *Init) Start() error {
	err := p.Cmd.Start()
	for _, file := range p.theirs {
		_ = file.Close() // the end of the process must end the reports
	}
	if err != nil {
		_, _ = p.ours[0].Close(), p.ours[1].Close()
		return fmt.Errorf("start a pod: %w", err)
	}
	return nil
}

// Run starts the program, and returns its number outside the pod.
func (p *Init) Run() (pid int, err error) {
	var first message
	if err = json.NewEncoder(p.ours[0]).Encode(p.what); err == nil {
		err = errors.Join(p.ours[0].Close(), p.reports.Decode(&first))
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("start %s in a pod: %w", p.what.Program.Path, err)
	case first.Error != "":
		return 0, errors.New(first.Error)
	}
	return outside(p.Cmd.Process.Pid, first.PID), nil
}

// outside returns the number that a process of a pod has outside; that of the first process when it has ended.
func outside(first, inner int) int {
	want := []string{"NSpid:", strconv.Itoa(inner)}
	for _, pid := range identity.Numbers() {
		fields, err := identity.Stat(pid)
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(first) {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(status)) {
			if all := strings.Fields(line); len(all) > 2 && all[0] == want[0] && all[len(all)-1] == want[1] {
				return pid
			}
		}
	}
	return first
}

// End returns how the program ended, when the first process is gone; nil when it was killed.
func (p *Init) End() *End {
	defer func() { _ = p.ours[1].Close() }()
	var last message
	if p.reports.Decode(&last) != nil {
		return nil
	}
	return last.End
}

// check starts a pod with a process of this executable file that ends at once.
func check() (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n, inner, err := NewNetwork()
	if err != nil {
		return err
	}
	defer n.Close()
	p, err := New(Pod{Name: name, Address: netip.MustParseAddr("10.0.0.2"), User: 65532,
		Server: netip.MustParseAddrPort("10.0.0.1:443")},
		Container{Path: self, Args: []string{checkName}, Env: []string{}, Dir: "/"}, inner)
	if err != nil {
		return errors.Join(err, inner.Close())
	}
	err = p.Start()
	_ = inner.Close()
	if err != nil {
		return err
	}
	timer := time.AfterFunc(10*time.Second, func() { _ = p.Process.Kill() })
	defer timer.Stop()
	defer func() { _ = p.Wait() }() // End has the result
	if _, err := p.Run(); err != nil {
		return err
	}
	l, err := n.Listener()
	if err != nil {
		return err
	}
	defer l.Close()
	if end := p.End(); end == nil || *end != (End{}) {
		return fmt.Errorf("the first program in a pod ended with %+v", end)
	}
	return nil
}
