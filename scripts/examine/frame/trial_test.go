package frame

import (
	"context"
	"slices"
	"testing"
)

// TestTheEndOfATrial ends a trial whose time is over: what it put in force goes all the same, the last part first.
func TestTheEndOfATrial(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var gone []int
	trial := &Trial{Ctx: over}
	for n := range 3 {
		_, _ = trial.untilEnd(func(ctx context.Context) error {
			if ctx.Err() == nil {
				gone = append(gone, n)
			}
			return nil
		}, nil)
	}
	if trial.End(context.WithoutCancel(over)); !slices.Equal(gone, []int{2, 1, 0}) {
		t.Error(gone)
	}
}
