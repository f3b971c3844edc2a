package owned

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How often children of one resource are restored: so many at once, and one more each time this passes. Two
// programs that want different things of one object would else write as fast as they can.
const (
	restoreBurst = 5
	restoreEvery = 10 * time.Second
)

// limits bound how often what others undo is done again, by resource.
type limits struct {
	mu    sync.Mutex
	limit map[client.ObjectKey]*rate.Limiter
}

// wait returns how long to wait before one more child may be restored; 0 is not at all.
func (l *limits) wait(owner client.ObjectKey, now time.Time) time.Duration {
	reservation := l.of(owner).ReserveN(now, 1)
	defer reservation.CancelAt(now)
	return reservation.DelayFrom(now)
}

// took counts one child that was restored.
func (l *limits) took(owner client.ObjectKey, now time.Time) {
	l.of(owner).AllowN(now, 1)
}

func (l *limits) of(owner client.ObjectKey) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == nil {
		l.limit = map[client.ObjectKey]*rate.Limiter{}
	}
	if l.limit[owner] == nil {
		l.limit[owner] = rate.NewLimiter(rate.Every(restoreEvery), restoreBurst)
	}
	return l.limit[owner]
}

// forget ends the account of a resource that is gone.
func (l *limits) forget(owner client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.limit, owner)
}
