package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
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
	// releaseTimeout is what giving it back may take. A clean stop must not last longer than 10 s in all.
	releaseTimeout = time.Second
)

// A lease makes sure that of several replicas only one works.
type lease struct {
	elector *leaderelection.LeaderElector
	started chan context.Context
	lost    context.Context // ends when it is noticed that the lease is held no longer
	lose    context.CancelFunc
	release context.CancelFunc
}

// newLease returns a lease on an object of the given namespace, not yet held.
func newLease(kube kubernetes.Interface, namespace string) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &lease{started: make(chan context.Context, 1)}
	l.lost, l.lose = context.WithCancel(context.Background())
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
			Client:     kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   leaseRenew,
		RetryPeriod:     leaseRetry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { l.started <- ctx },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				klog.Background().Info("The lease is held", "by", identity)
			},
		},
	})
	return l, err
}

// run works while it holds the lease, until ctx ends. The order of a clean stop is what matters: first
// the work ends, then the lease is given back, so the next leader neither waits nor works beside us. A
// lease that is lost is an error, and not given back: it may be another's. Whoever runs us starts us
// again, from nothing.
func (l *lease) run(ctx context.Context, work func(context.Context)) error {
	var electing context.Context
	electing, l.release = context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		l.elector.Run(electing)
		close(ended)
	}()
	select {
	case leading := <-l.started: // ends when the lease could not be renewed
		working, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(leading, stop)
		context.AfterFunc(l.lost, stop)
		work(working)
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return fmt.Errorf("lost the lease %s: it could not be renewed for %s, or another replica took it", leaseName, leaseRenew)
	}
	l.release()
	select {
	case <-ended:
	case <-time.After(releaseTimeout):
	}
	return nil
}

// check fails, and ends the work, when the lease is held no longer. The elector would notice up to
// leaseRenew later: when the process was suspended, for one.
func (l *lease) check() error {
	if !l.elector.IsLeader() || l.elector.Check(0) != nil {
		l.lose()
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

func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if err := f.lease.check(); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(r)
}
