package controller

import (
	"errors"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

// Two metrics of this package. The libraries add the metrics of the queue and of the client.
var (
	syncTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "myweb_sync_total",
		Help: "Syncs of a MyWeb by result: success, condition (status reports it), error.",
	}, []string{"result"})
	syncSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name:    "myweb_sync_duration_seconds",
		Help:    "How long one sync of a MyWeb took.",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	})
)

func init() { legacyregistry.MustRegister(syncTotal, syncSeconds) }

// observeSync counts one sync that began at start and ended now with err.
func observeSync(start time.Time, err error) {
	result := "success"
	if _, ok := errors.AsType[*myweb.ConditionError](err); ok {
		result = "condition"
	} else if err != nil {
		result = "error"
	}
	syncTotal.WithLabelValues(result).Inc()
	syncSeconds.Observe(time.Since(start).Seconds())
}
