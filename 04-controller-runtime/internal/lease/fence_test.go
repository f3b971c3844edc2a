package lease

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// storedLease is a lock without an API server.
type storedLease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
	during func() // called while a write is being sent
}

func (m *storedLease) Identity() string { return "me" }

func (m *storedLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &m.record, nil, m.err
}

func (m *storedLease) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return m.Update(context.Background(), record)
}

func (m *storedLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if m.during != nil {
		m.during()
	}
	if m.err == nil {
		m.record = record
	}
	return m.err
}

func leaseRecord(holder string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder,
		LeaseDurationSeconds: int(leaseDuration / time.Second)}
}

func TestWhenTheLockIsHeld(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		steps func(l *Lock, m *storedLease, now *time.Time)
		held  bool
	}{
		"never acquired": {func(*Lock, *storedLease, *time.Time) {}, false},
		"created":        {func(l *Lock, _ *storedLease, _ *time.Time) { _ = l.Create(ctx, leaseRecord("me")) }, true},
		"a refused creation": {func(l *Lock, m *storedLease, _ *time.Time) {
			m.err = errors.New("409")
			_ = l.Create(ctx, leaseRecord("me"))
		}, false},
		"renewed": {func(l *Lock, _ *storedLease, now *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			*now = now.Add(leaseDuration - 1)
		}, true},
		"not renewed in time": {func(l *Lock, _ *storedLease, now *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			*now = now.Add(leaseDuration)
		}, false},
		"a slow answer": {func(l *Lock, m *storedLease, now *time.Time) {
			m.during = func() { *now = now.Add(leaseDuration) } // it counts from when the request was sent
			_ = l.Update(ctx, leaseRecord("me"))
		}, false},
		"a refused renewal": {func(l *Lock, m *storedLease, _ *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			m.err = errors.New("409")
			_ = l.Update(ctx, leaseRecord("me"))
		}, true},
		"released": {func(l *Lock, _ *storedLease, _ *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			_ = l.Update(ctx, leaseRecord(""))
		}, false},
		"a release whose answer is lost": {func(l *Lock, m *storedLease, _ *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			m.err = errors.New("connection reset by peer")
			_ = l.Update(ctx, leaseRecord(""))
		}, false},
		"seen as its own": {func(l *Lock, _ *storedLease, _ *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			_, _, _ = l.Get(ctx)
		}, true},
		"stolen": {func(l *Lock, m *storedLease, _ *time.Time) {
			_ = l.Update(ctx, leaseRecord("me"))
			m.record = leaseRecord("thief")
			_, _, _ = l.Get(ctx)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &storedLease{}
			l, now := NewLock(m), time.Now()
			l.now = func() time.Time { return now }
			test.steps(l, m, &now)
			if got := l.Held(); got != test.held {
				t.Errorf("held: %v, want %v", got, test.held)
			}
		})
	}
}

// While a machine is suspended, the monotonic clock stands still; and the wall clock can be set back.
func TestBothClocksEndALease(t *testing.T) {
	for name, test := range map[string]struct{ wall, monotonic time.Duration }{
		"suspended":                     {leaseDuration, 0},
		"the wall clock stays the same": {0, leaseDuration},
	} {
		l := NewLock(&storedLease{})
		began, wall, monotonic := time.Now().Round(0), time.Duration(0), time.Duration(0)
		l.now = func() time.Time { return began.Add(wall) }
		l.elapsed = func() time.Duration { return monotonic }
		if err := l.Create(t.Context(), leaseRecord("me")); err != nil || !l.Held() {
			t.Fatalf("held: %v, %v", l.Held(), err)
		}
		if wall, monotonic = test.wall, test.monotonic; l.Held() {
			t.Errorf("%s: it is held", name)
		}
	}
	if now := NewLock(&storedLease{}).now(); now != now.Round(0) {
		t.Errorf("%v has a reading of the monotonic clock", now)
	}
}

// Another process may hold the lease before the answer to its release arrives.
func TestALeaseThatIsBeingReleasedIsNotHeld(t *testing.T) {
	stored := &storedLease{}
	l := NewLock(stored)
	_ = l.Update(t.Context(), leaseRecord("me"))
	called := false
	stored.during = func() {
		if called = true; l.Held() {
			t.Error("it is held")
		}
	}
	_ = l.Update(t.Context(), leaseRecord(""))
	if !called {
		t.Error("no release was sent")
	}
}

type body struct {
	strings.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestOnlyWritesNeedTheLock(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, request := range []string{"GET /api", "POST /api", "PATCH /api", "PUT /api", "DELETE /api",
			"POST /apis/authentication.k8s.io/v1/tokenreviews"} {
			method, path, _ := strings.Cut(request, " ")
			l, b := NewLock(&storedLease{}), &body{}
			if held {
				if err := l.Create(t.Context(), leaseRecord("me")); err != nil {
					t.Fatal(err)
				}
			}
			sent := false
			r, err := http.NewRequest(method, "https://192.0.2.1"+path, b)
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.RoundTripper(transport(func(*http.Request) (*http.Response, error) {
				sent = true
				return nil, nil
			})).RoundTrip(r)
			if want := held || method == http.MethodGet || strings.HasSuffix(path, "reviews"); sent != want ||
				errors.Is(err, ErrNotHeld) == want {
				t.Errorf("%s, held %v: sent %v, %v", request, held, sent, err)
			}
			if !sent && !b.closed {
				t.Errorf("%s was refused, and its body is open", request)
			}
			if lost := l.Lost().Err() != nil; lost == sent {
				t.Errorf("%s was sent: %v, the lock is lost: %v", request, sent, lost)
			}
		}
	}
}
