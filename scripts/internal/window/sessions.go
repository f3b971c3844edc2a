package window

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"example.com/operator-workshop/scripts/examine/process"
)

// endSession ends all processes of a terminal's session: first with the signal of a closed terminal, and after the
// grace period with SIGKILL. A program that has left the session, such as the local cluster, continues.
func endSession(session int, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	signal := unix.SIGHUP
	for {
		left := members(session)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			if signal == unix.SIGKILL && time.Now().After(deadline.Add(5*time.Second)) {
				return fmt.Errorf("%d processes of a terminal do not end", len(left))
			}
			signal = unix.SIGKILL
		}
		if signal != 0 {
			for _, id := range left {
				if err := id.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
					return err
				}
				_ = id.Signal(unix.SIGCONT) // a stopped process does not handle signals
			}
		}
		if signal == unix.SIGHUP {
			signal = 0 // once
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// members returns the processes of a session.
func members(session int) (found []process.Identity) {
	for _, id := range process.Own(func(string) bool { return true }) {
		if sid, err := unix.Getsid(id.PID); err == nil && sid == session {
			found = append(found, id)
		}
	}
	return found
}
