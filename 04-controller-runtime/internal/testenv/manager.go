package testenv

import (
	"context"
	"sync"
	"testing"
)

// Run runs a manager until the test ends, or stop is called. It must end without an error.
func Run(t *testing.T, start func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var manager sync.WaitGroup
	manager.Go(func() {
		if err := start(ctx); err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	stop = func() { cancel(); manager.Wait() }
	t.Cleanup(stop)
	return stop
}
