package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// healthPort is the port of every operator's --health-probe-bind-address, by default.
const healthPort = 8081

// Machine has the data that a check reads besides the environment. Local returns the machine of this process; a test
// replaces parts.
type Machine struct {
	// OS is a GOOS value: "linux" has /proc and /sys under Root, other systems do not.
	OS string
	// Root is the folder that holds proc and sys.
	Root string
	// Repository is the workshop's folder.
	Repository string
	// HealthPort is the port on 127.0.0.1 that operators use for their health probe.
	HealthPort int
	// Disk returns the bytes that an ordinary user can still write below an existing path.
	Disk func(path string) (free uint64, err error)
}

// Local returns the machine of this process, for the workshop in the folder repository.
func Local(repository string) Machine {
	return Machine{OS: runtime.GOOS, Root: "/", Repository: repository, HealthPort: healthPort, Disk: diskFree}
}

// run runs a program in the folder scripts, whose go.mod asks for the workshop's Go, and returns its standard output.
// The error contains the program's standard error.
func (m Machine) run(ctx context.Context, name string, arguments ...string) (string, error) {
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = filepath.Join(m.Repository, "scripts")
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = time.Second
	err := command.Run()
	if err == nil {
		return stdout.String(), nil
	}
	call := strings.Join(append([]string{name}, arguments...), " ")
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("run %s: no answer in time", call)
	}
	if said := strings.TrimSpace(stderr.String()); said != "" {
		return "", fmt.Errorf("run %s: %s (%w)", call, said, err)
	}
	return "", fmt.Errorf("run %s: %w", call, err)
}

func diskFree(path string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}
