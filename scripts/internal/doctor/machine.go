package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// DefaultProbe is the module version that Local asks of the module proxies: one that the workshop
// needs, and small.
const DefaultProbe = "k8s.io/api@v0.37.1"

// DefaultHealthPort is the port of every operator's --health-probe-bind-address, by default.
const DefaultHealthPort = 8081

// Machine is everything that a check reads. Local gives the machine at hand; a test replaces parts.
type Machine struct {
	// OS is a GOOS value: "linux" has /proc and /sys under Root, others do not.
	OS string
	// Arch is a GOARCH value, Cores how many processors there are.
	Arch  string
	Cores int
	// Root is the folder that holds proc and sys.
	Root string
	// Repository is the workshop's folder, State the one of its local cluster (holding cluster/).
	Repository, State string
	// Probe is the module version asked of the module proxies, as module@version.
	Probe string
	// HealthPort is the port on 127.0.0.1 that operators use for their health probe.
	HealthPort int
	// Limit bounds one check; DefaultLimit when zero.
	Limit time.Duration

	// Getenv reads an environment variable, "" when it is not set.
	Getenv func(name string) string
	// LookPath finds a program in PATH, or returns an error.
	LookPath func(name string) (string, error)
	// Run runs a program in Repository until ctx ends and returns its standard output. The error
	// tells what the program wrote to standard error.
	Run func(ctx context.Context, name string, arguments ...string) (string, error)
	// Hostname is the kernel's name of this host.
	Hostname func() (string, error)
	// Listen opens a listener as net.Listen does.
	Listen func(network, address string) (net.Listener, error)
	// Dial opens a connection as net.DialTimeout does.
	Dial func(network, address string, timeout time.Duration) (net.Conn, error)
	// Disk tells the bytes that an ordinary user can still write below an existing path.
	Disk func(path string) (free uint64, err error)
	// Client asks the module proxies, by way of the environment's HTTP proxy.
	Client *http.Client
}

// Local is the machine that this process runs on, for the workshop in the folder repository and the
// state of its local cluster in the folder state.
func Local(repository, state string) Machine {
	return Machine{
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Cores:      runtime.NumCPU(),
		Root:       "/",
		Repository: repository,
		State:      state,
		Probe:      DefaultProbe,
		HealthPort: DefaultHealthPort,
		Limit:      DefaultLimit,
		Getenv:     os.Getenv,
		LookPath:   exec.LookPath,
		Run: func(ctx context.Context, name string, arguments ...string) (string, error) {
			return run(ctx, repository, name, arguments...)
		},
		Hostname: os.Hostname,
		Listen:   net.Listen,
		Dial:     net.DialTimeout,
		Disk:     diskFree,
		Client:   &http.Client{Transport: http.DefaultTransport},
	}
}

// run keeps the program in a process group of its own, so that the end of ctx also ends what the
// program has started.
func run(ctx context.Context, folder, name string, arguments ...string) (string, error) {
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	command.Stdout, command.Stderr = &stdout, &stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		call := strings.Join(append([]string{filepath.Base(name)}, arguments...), " ")
		if said := strings.TrimSpace(stderr.String()); said != "" {
			return stdout.String(), fmt.Errorf("run %s: %s (%w)", call, said, err)
		}
		return stdout.String(), fmt.Errorf("run %s: %w", call, err)
	}
	return stdout.String(), nil
}

func diskFree(path string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}

// file is a path under proc or sys.
func (m Machine) file(elements ...string) string {
	return filepath.Join(append([]string{m.Root}, elements...)...)
}

func (m Machine) has(program string) bool {
	_, err := m.LookPath(program)
	return err == nil
}

// goEnv returns one setting of the go command, with the defaults and the go env file considered.
func (m Machine) goEnv(ctx context.Context, name string) (string, error) {
	if !m.has("go") {
		return "", fmt.Errorf("go is not in PATH")
	}
	value, err := m.Run(ctx, "go", "env", name)
	return strings.TrimSpace(value), err
}
