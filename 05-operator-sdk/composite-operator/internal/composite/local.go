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

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// StartHook runs the program of a hook beside the controller, and returns the URL that it prints. In a cluster the hook
// is a container or a Service instead. The program ends when this process does, because its stdin is closed then. It
// runs in a separate process group: a signal to stop must reach only the controller, which still needs the hook to
// finish. When the program ends first, the manager ends with an error.
func StartHook(mgr ctrl.Manager, program string) (url string, err error) {
	cmd := exec.Command(program, "--listen=127.0.0.1:0", "--end-with-stdin")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the hook: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the hook %s did not print its URL: %w", program, err)
	}
	end := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		end <- fmt.Errorf("the hook ended: %w", cmd.Wait())
	}()
	return strings.TrimSpace(line), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case err := <-end:
			return err
		case <-ctx.Done():
			return nil
		}
	}))
}
