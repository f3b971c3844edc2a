package composite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// StartHook runs the program of a hook beside the controller, and returns the URL that it prints. In a cluster the hook
// is a container or a Service instead. The program ends when this process does, because its stdin is closed then. It
// runs in a separate process group: a signal to stop must reach only the controller, which still needs the hook to
// finish.
func StartHook(program string, args ...string) (url string, ended <-chan error, err error) {
	cmd := exec.Command(program, append([]string{"--listen=127.0.0.1:0", "--end-with-stdin"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the hook: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("the hook %s did not print its URL: %w", program, err)
	}
	end := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		end <- fmt.Errorf("the hook ended: %w", cmd.Wait())
	}()
	return strings.TrimSpace(line), end, nil
}

// Until returns a context that ends with ctx, or when the channel delivers an error.
func Until(ctx context.Context, failed <-chan error) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
