package examine

import (
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// eventually returns nil when observe returns nil within the time, otherwise the last error of observe. The end of
// the experiment's time is an error, too: a check must not pass because of it.
func (t *trial) eventually(within time.Duration, observe func() error) error {
	begin := time.Now()
	for {
		err := observe()
		if err == nil || t.ctx.Err() == nil && time.Since(begin) > within {
			return err
		}
		if pauseErr := fixture.Pause(t.ctx, 30*time.Millisecond); pauseErr != nil {
			return fmt.Errorf("%w: %w", err, pauseErr)
		}
	}
}
