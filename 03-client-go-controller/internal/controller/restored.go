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

// wait returns how long to wait before one more child may be restored; 0 is not at all.
func (r *restoreLimits) wait(web cache.ObjectName, now time.Time) time.Duration {
	reservation := r.of(web).ReserveN(now, 1)
	defer reservation.CancelAt(now)
	return reservation.DelayFrom(now)
}

// took counts one child that was restored.
func (r *restoreLimits) took(web cache.ObjectName, now time.Time) {
	r.of(web).AllowN(now, 1)
}

func (r *restoreLimits) of(web cache.ObjectName) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == nil {
		r.limit = map[cache.ObjectName]*rate.Limiter{}
	}
	if r.limit[web] == nil {
		r.limit[web] = rate.NewLimiter(rate.Every(restoreEvery), restoreBurst)
	}
	return r.limit[web]
}

// forget ends the account of a MyWeb that is gone.
func (r *restoreLimits) forget(web cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.limit, web)
}
