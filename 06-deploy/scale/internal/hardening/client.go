package hardening

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A reconcile keeps its worker for at most readTimeout until the cache has the writes of this process, and tries again
// after readRetry. Almost always the cache needs milliseconds. But a watch can hang. And the client, which waits for an
// event, gets no event for an object that was made and deleted in a gap of the watch.
const (
	readTimeout = time.Second
	readRetry   = 5 * time.Second
)

// Reads decorates a client: a read waits until the cache has the writes of this process, but not for long. Demanded by the
// checks of fault/10: a status that is computed from an older cache would be refused, with 409 Conflict. A longer wait would
// take the worker from all other objects.
func Reads(c client.Client) client.Client { return boundedReads{c} }

type boundedReads struct{ client.Client }

// Get implements client.Reader. It returns a RequeueAfter when the cache does not catch up soon.
func (c boundedReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object,
	opts ...client.GetOption) error {
	waiting, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := c.Client.Get(waiting, key, obj, opts...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return RequeueAfter(readRetry)
	}
	return err
}
