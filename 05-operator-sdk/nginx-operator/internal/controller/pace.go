package controller

import (
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
)

// Demanded by TestAThousandPodChangesCostFewStatusWrites: pods may come and go quickly, and each write of the status is
// sent to every watcher, for example autoscalers and kubectl.

// The rate limit of status writes for one Nginx: statusBurst writes at once, and then one every statusEvery. A delayed
// status is computed again when the delay is over.
const (
	statusBurst = 2
	statusEvery = 2 * time.Second
	maxPaced    = 4096 // Nginxes whose limiter is kept, each for a minute
)

// A StatusPace limits how often the status of each Nginx is written.
type StatusPace struct{ limits *cache.LRUExpireCache }

// NewStatusPace returns a StatusPace that has counted no writes.
func NewStatusPace() StatusPace { return StatusPace{cache.NewLRUExpireCache(maxPaced)} }

// delay returns how long the next write must wait. When it returns 0, it has counted the write.
func (p StatusPace) delay(nginx types.UID, now time.Time) time.Duration {
	known, found := p.limits.Get(nginx)
	if !found {
		known = rate.NewLimiter(rate.Every(statusEvery), statusBurst)
	}
	p.limits.Add(nginx, known, time.Minute)
	reservation := known.(*rate.Limiter).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
