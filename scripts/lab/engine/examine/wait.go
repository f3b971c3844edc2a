package examine

import (
	"context"
	"fmt"
	"time"
)

// pause returns an error when ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// eventually returns nil when observe does within the time, else what observe said last. The end of the
// experiment's own time is an error too: nothing passes by it.
func (t *trial) eventually(within time.Duration, observe func() error) error {
	begin := time.Now()
	for {
		err := observe()
		if err == nil || t.ctx.Err() == nil && time.Since(begin) > within {
			return err
		}
		if pauseErr := pause(t.ctx, 30*time.Millisecond); pauseErr != nil {
			return fmt.Errorf("%w: %w", err, pauseErr)
		}
	}
}
