package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"k8s.io/client-go/tools/cache"
)

// How often children of one MyWeb are restored: so many at once, and one more each time this passes. Two
// programs that want different things of one object would else write as fast as they can.
const (
	restoreBurst = 5
	restoreEvery = 10 * time.Second
)

// restoreLimits bound how often what others undo is done again, by MyWeb.
type restoreLimits struct {
	mu    sync.Mutex
	limit map[cache.ObjectName]*rate.Limiter
}

// wait takes leave to restore one child now and returns 0, or returns when to ask again.
func (r *restoreLimits) wait(web cache.ObjectName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == nil {
		r.limit = map[cache.ObjectName]*rate.Limiter{}
	}
	if r.limit[web] == nil {
		r.limit[web] = rate.NewLimiter(rate.Every(restoreEvery), restoreBurst)
	}
	reservation := r.limit[web].ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}

// forget ends the account of a MyWeb that is gone.
func (r *restoreLimits) forget(web cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.limit, web)
}
