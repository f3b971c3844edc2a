package process

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// The shell waits for the program that it runs, as go test does for the test.
func TestTheEndOfAContextEndsTheWholeGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := Command(ctx, 10*time.Second, "sh", "-c", "trap 'exit 3' INT; sh -c 'echo ready; exec tail -f /dev/null'")
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	err = cmd.Wait()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the shell has not ended by itself: %v", err)
	}
}
