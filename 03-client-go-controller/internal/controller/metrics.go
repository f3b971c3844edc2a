package controller

import (
	"errors"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Two metrics of our own. Those of the queue and of the client come with the libraries.
var (
	syncTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "myweb_sync_total",
		Help: "Syncs of a MyWeb by result: success, obstacle (status says what is in the way), error, panic.",
	}, []string{"result"})
	syncSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name:    "myweb_sync_duration_seconds",
		Help:    "How long one sync of a MyWeb took.",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	})
)

func init() { legacyregistry.MustRegister(syncTotal, syncSeconds) }

// observe counts one sync that began at start and ended now with err.
func observe(start time.Time, err error) {
	result := "success"
	if _, ok := errors.AsType[obstacle](err); ok {
		result = "obstacle"
	} else if errors.Is(err, errPanic) {
		result = "panic"
	} else if err != nil {
		result = "error"
	}
	syncTotal.WithLabelValues(result).Inc()
	syncSeconds.Observe(time.Since(start).Seconds())
}
