package controller

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

// Demanded by TestWhatIsLogged and, with hardening.Deduplicate, by fault/31-logged-once.

// logSyncError logs why a sync has to be retried. What status reports is not logged, too.
func logSyncError(logger klog.Logger, err error) {
	if _, ok := errors.AsType[*myweb.ConditionError](err); ok {
		return
	}
	if apierrors.IsConflict(err) || errors.Is(err, errNodePortNotFree) {
		logger.V(1).Info("Could not sync yet, retrying", "err", err)
		return
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		logger = logger.WithValues("stacktrace", string(p.stack))
	}
	logger.Error(err, "Could not sync, retrying with backoff")
}

// logWatchErrors logs why an informer cannot list or watch. It retries by itself.
func (i *Informers) logWatchErrors() error {
	for kind, informer := range i.byKind() {
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			if ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Could not list or watch, retrying with backoff", "kind", kind)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
