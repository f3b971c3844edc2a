package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How often the status of one Nginx is written: so many times at once, and one more each time this passes.
// Pods come and go as fast as a cluster can; each write is sent to all who watch, autoscalers and people's
// kubectl among them. Nobody needs to know every step; within this time everybody knows the last one.
const (
	statusBurst = 2
	statusEvery = 2 * time.Second
)

// pace bounds how often status is written, by Nginx.
type pace struct {
	mu    sync.Mutex
	limit map[client.ObjectKey]*rate.Limiter
}

// take counts a write and returns 0 when it may be made now. Else it returns how long to wait, and counts
// nothing.
func (p *pace) take(nginx client.ObjectKey, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == nil {
		p.limit = map[client.ObjectKey]*rate.Limiter{}
	}
	if p.limit[nginx] == nil {
		p.limit[nginx] = rate.NewLimiter(rate.Every(statusEvery), statusBurst)
	}
	reservation := p.limit[nginx].ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// forget ends the account of an Nginx that is gone.
func (p *pace) forget(nginx client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.limit, nginx)
}
