package window

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"example.com/operator-workshop/scripts/internal/process"
)

// endSession ends all processes of a terminal's session: first as a terminal does that is closed, and what is left after
// the grace period for good. A program that has left the session, as the local cluster does, goes on.
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
				_ = id.Signal(unix.SIGCONT) // one that is stopped takes no signal
			}
		}
		if signal == unix.SIGHUP {
			signal = 0 // once
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// members are the processes of a session.
func members(session int) (found []process.Identity) {
	for _, id := range process.Own(func(string) bool { return true }) {
		if sid, err := unix.Getsid(id.PID); err == nil && sid == session {
			found = append(found, id)
		}
	}
	return found
}
