package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Demanded by fault/33-panic.

// A panicError is what a sync panicked with.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

// recoverPanic calls syncHandler and turns a panic into an error, because one MyWeb that triggers a bug must
// not stop the others.
func (c *Controller) recoverPanic(ctx context.Context, name cache.ObjectName) (requeueAfter time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			requeueAfter, err = 0, &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return c.syncHandler(ctx, name)
}
