package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestAThousandPodChangesCostFewStatusWrites: pods may come and go quickly, and each write of the status is
// sent to every watcher, for example autoscalers and kubectl.

// How often the status of one Nginx is written: statusBurst times at once, and then once every statusEvery. A delayed
// status is computed again when the delay is over.
const (
	statusBurst = 2
	statusEvery = 2 * time.Second
)

// pace limits how often the status of each Nginx is written.
type pace struct {
	mu    sync.Mutex
	limit map[client.ObjectKey]*rate.Limiter
}

// take counts a write and returns 0 if the status may be written now. Otherwise it returns how long to wait, and does
// not count.
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

// forget drops the limiter of an Nginx that is gone.
func (p *pace) forget(nginx client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.limit, nginx)
}
