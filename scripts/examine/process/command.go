package process

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// Command is a program in a separate process group. SIGINT reaches the whole group when ctx ends, as Ctrl-C in a terminal
// does: the go command, make and a shell wait for the program that they run, and do not pass the signal on. Without the
// group, Ctrl-C would reach the program before ctx ends, and its end would look like a failure. The programs have the time
// grace to clean up.
func Command(ctx context.Context, grace time.Duration, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = grace
	return cmd
}
