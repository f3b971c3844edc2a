package operator

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/hardening"
)

// Demanded by TestAThousandPodChangesCostFewStatusWrites: pods may come and go quickly, and each write of the status is
// sent to every watcher, for example autoscalers and kubectl.

// The rate limit of status writes for one resource: statusBurst writes at once, and then one every statusEvery. A
// delayed status is computed again when the delay is over.
const (
	statusBurst = 2
	statusEvery = 2 * time.Second
	maxPaced    = 4096 // resources whose limiter is kept, each for a minute
)

// Paced decorates a client: it limits how often the status of each resource is written.
func Paced(c client.Client, now clock.PassiveClock) client.Client {
	return paced{c, cache.NewLRUExpireCache(maxPaced), now}
}

type paced struct {
	client.Client
	limits *cache.LRUExpireCache
	now    clock.PassiveClock
}

// Status implements client.StatusClient.
func (c paced) Status() client.SubResourceWriter { return pacedStatus{c.Client.Status(), c} }

type pacedStatus struct {
	client.SubResourceWriter
	paced
}

// Update implements client.SubResourceWriter. It returns a RequeueAfter when the write has to wait. Only a
// successful write counts.
func (w pacedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	known, found := w.limits.Get(obj.GetUID())
	if !found {
		known = rate.NewLimiter(rate.Every(statusEvery), statusBurst)
	}
	w.limits.Add(obj.GetUID(), known, time.Minute)
	now := w.now.Now()
	reservation := known.(*rate.Limiter).ReserveN(now, 1)
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
		return hardening.RequeueAfter(wait)
	}
	err := w.SubResourceWriter.Update(ctx, obj, opts...)
	if err != nil {
		reservation.CancelAt(now)
	}
	return err
}
