package hardening

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestAHungWatchHoldsAWorkerForASecondOnly: a client that reads its own writes waits until a watch has
// delivered them. A watch can hang, and a worker that waits forever delays all other resources.

// How long a read waits, and the delay until the next reconcile after that.
const (
	readTimeout = time.Second
	staleRetry  = 5 * time.Second
)

// RequeueAfter is an error that asks for another reconcile after a delay. Nothing has failed.
type RequeueAfter time.Duration

// Error implements error.
func (r RequeueAfter) Error() string { return "reconcile again in " + time.Duration(r).String() }

// A Client reads from a cache that sees what it writes.
type Client struct {
	client.Client
	// Live reads from the API server.
	Live client.Reader
}

// Get implements client.Reader. It returns a RequeueAfter when the cache does not catch up soon.
func (c Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object,
	opts ...client.GetOption) error {
	waiting, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := c.Client.Get(waiting, key, obj, opts...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return RequeueAfter(staleRetry)
	}
	return err
}
