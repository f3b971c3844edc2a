package lease

// Demanded by fault/16-leader-stopped and fault/16-lease-stolen, and by TestBothClocksEndALease for a machine that was
// suspended. An elector notices a lost lease up to its renew deadline later.

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrNotHeld is the error of a request that is refused.
var ErrNotHeld = errors.New("the lease is not held any more")

// A Lock is a resource lock that knows until when this process holds it.
type Lock struct {
	resourcelock.Interface

	now     func() time.Time     // the wall clock, which can be set back
	elapsed func() time.Duration // the monotonic clock, which stands still while a machine is suspended
	lost    context.Context      // ends when a request was refused
	lose    context.CancelFunc

	mu    sync.Mutex
	until time.Time     // on the wall clock
	end   time.Duration // on the monotonic clock
}

// NewLock returns a lock, not held yet.
func NewLock(lock resourcelock.Interface) *Lock {
	start := time.Now()
	l := &Lock{Interface: lock, elapsed: func() time.Duration { return time.Since(start) }}
	l.now = func() time.Time { return time.Now().Round(0) } // without its reading of the monotonic clock
	l.lost, l.lose = context.WithCancel(context.Background())
	return l
}

// Lost returns a context that ends when a request was refused: the process should end its work.
func (l *Lock) Lost() context.Context { return l.lost }

// Get implements resourcelock.Interface.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.hold(time.Time{}, 0) // another process took it
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// write writes a record. With our identity in it, the lock is held from before the request was sent. Without
// it, the lock is released, and may be another's before the answer arrives.
func (l *Lock) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	if record.HolderIdentity != l.Identity() {
		l.hold(time.Time{}, 0)
		return send()
	}
	duration := time.Duration(record.LeaseDurationSeconds) * time.Second
	until, end := l.now().Add(duration), l.elapsed()+duration
	err := send()
	if err == nil {
		l.hold(until, end)
	}
	return err
}

func (l *Lock) hold(until time.Time, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.end = until, end
}

// Held reports whether this process holds the lock now.
func (l *Lock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now().Before(l.until) && l.elapsed() < l.end
}

// RoundTripper lets a request that changes something pass only while the lock is held. A process that was
// suspended for longer than its lease resumes in the middle of its work, and must not continue it. A review is a
// question: it changes nothing.
func (l *Lock) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return fence{lock: l, next: next}
}

type fence struct {
	lock *Lock
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper, which closes the body of a request in any case.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	question := r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "reviews")
	if question || f.lock.Held() {
		return f.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	f.lock.lose()
	return nil, ErrNotHeld
}
