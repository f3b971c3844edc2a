package hardening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/util/cache"
)

// Demanded by fault/31-logged-once for the operators of MyWeb, and by TestAnErrorThatRepeatsIsLoggedOnce: a fault that
// lasts all night causes one line in the log, not a line for each retry.

// Deduplicate returns a logger that writes a repeated error once an hour. Two errors are the same when their messages,
// errors and values are equal, except for values that differ at every try. Requests that are cancelled when ctx ends
// are not errors.
func Deduplicate(ctx context.Context, logger logr.Logger) logr.Logger { //nolint:logcheck // ctx ends the program
	sink := &deduplicated{LogSink: logger.GetSink(), stopping: ctx.Err, seen: cache.NewLRUExpireCache(4096)}
	return logger.WithSink(sink)
}

type deduplicated struct {
	logr.LogSink
	stopping func() error
	seen     *cache.LRUExpireCache
	name     string
	values   []any
}

// unique are values that differ at every try.
var unique = []any{"reconcileID", "stacktrace"}

// Error implements logr.LogSink.
func (d *deduplicated) Error(err error, message string, values ...any) {
	if errors.Is(err, context.Canceled) && d.stopping() != nil {
		return
	}
	key := fmt.Sprint(d.name, message, err)
	for all := slices.Concat(d.values, values); len(all) > 1; all = all[2:] {
		if !slices.Contains(unique, all[0]) {
			key += fmt.Sprint(all[:2]...)
		}
	}
	if _, repeated := d.seen.Get(key); !repeated {
		d.seen.Add(key, true, time.Hour)
		d.LogSink.Error(err, message, values...)
	}
}

// WithValues implements logr.LogSink.
func (d *deduplicated) WithValues(values ...any) logr.LogSink {
	return &deduplicated{d.LogSink.WithValues(values...), d.stopping, d.seen, d.name, slices.Concat(d.values, values)}
}

// WithName implements logr.LogSink.
func (d *deduplicated) WithName(name string) logr.LogSink {
	return &deduplicated{d.LogSink.WithName(name), d.stopping, d.seen, d.name + name, d.values}
}
