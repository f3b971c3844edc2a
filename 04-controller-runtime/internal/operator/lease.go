package operator

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// leaseName is the same for both operators of the workshop: only one of them may work.
	leaseName = "myweb-operator"
	// A leader that cannot renew for leaseRenew stops; the others take over leaseDuration after they saw
	// its last renewal. They look every leaseRetry to 2.2 times that: with the usual 2 s a lease that was
	// given back could lie there for more than 4 s.
	leaseDuration = 15 * time.Second
	leaseRenew    = 10 * time.Second
	leaseRetry    = time.Second
)

// A lease makes sure that of several replicas only one works. The manager elects with it, and gives it
// back after its workers have ended. What the lease itself adds is to know how long it is held.
type lease struct {
	resourcelock.Interface

	mu   sync.Mutex
	held time.Time // until then
}

// newLease returns a lease on an object of the given namespace, or of the pod's own when that is empty.
// Its requests have a client of their own: they must pass the fence, and must not wait in line behind others.
func newLease(cfg *rest.Config, namespace string) (*lease, error) {
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(os.ReadFile); err != nil {
			return nil, err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(cfg)
	own.RateLimiter, own.QPS, own.Timeout = nil, -1, leaseRenew/2
	leases, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	return &lease{Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

// note writes a record and notes what it means: with our name in it, the lease is ours for a while from
// when it was written; without, it is given back, and may be another's before the answer is here.
func (l *lease) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	var until time.Time
	if record.HolderIdentity == l.Identity() {
		until = time.Now().Add(leaseDuration)
	} else {
		l.hold(until)
	}
	err := write()
	if err == nil {
		l.hold(until)
	}
	return err
}

func (l *lease) hold(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = until
}

// check fails when the lease is held no longer, and nobody noticed yet: the process was suspended, for
// one.
func (l *lease) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().After(l.held) {
		return errors.New("the lease is not held any more")
	}
	return nil
}

// fence lets requests that change something pass only while the lease is held. A process that slept for
// longer than its lease wakes up in the middle of its work, and must not go on with it.
type fence struct {
	lease *lease
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if err := f.lease.check(); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(r)
}

// podNamespace is where the pod around this program runs.
func podNamespace(read func(string) ([]byte, error)) (string, error) {
	data, err := read("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", errors.New("--leader-elect outside a cluster needs --leader-election-namespace")
	}
	return strings.TrimSpace(string(data)), nil
}
