package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// leaseName is the same for the operators of chapters 03 and 04, so only one of the two works. Without
	// leases both would write: the objects would be right, because both have the same desired state, but ten
	// MyWebs cost 74 writes instead of 50.
	leaseName = "myweb-operator"
	// A leader that cannot renew for leaseRenew stops. Another replica takes over leaseDuration after it saw the
	// last renewal. Replicas read the lease every leaseRetry to 2.2 times leaseRetry: with the usual 2 s a released
	// lease could stay unused for more than 4 s.
	leaseDuration = 15 * time.Second
	leaseRenew    = 10 * time.Second
	leaseRetry    = time.Second
	// releaseTimeout limits the time of the release. A clean stop must not last longer than 10 s in all.
	releaseTimeout = time.Second
)

// A lease ensures that only one of several replicas works.
type lease struct {
	elector *leaderelection.LeaderElector
	started chan context.Context // receives the context of the leader
}

// newLease returns a lease that is not held yet, in the given namespace, or in the pod's namespace when that is empty.
// Its requests have a separate client: they must not wait behind other requests.
func newLease(cfg *rest.Config, namespace string) (*lease, error) {
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(cfg)
	own.RateLimiter, own.Timeout = nil, leaseRenew/2
	client, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	l := &lease{started: make(chan context.Context, 1)}
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
			Client:     client,
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
				klog.Background().Info("Observed a leader", "identity", identity)
			},
		},
	})
	return l, err
}

// run calls work while it holds the lease, until ctx ends. The order of a clean stop matters: first the work
// ends, then the lease is released, so the next leader neither waits nor works at the same time. A lost lease
// is an error, and the process exits: the kubelet restarts it, without any state.
func (l *lease) run(ctx context.Context, work func(context.Context)) error {
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
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
		work(working)
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return fmt.Errorf("lost the lease %s: it could not be renewed for %s, or another replica took it",
			leaseName, leaseRenew)
	}
	release()
	select {
	case <-ended:
	case <-time.After(releaseTimeout):
	}
	return nil
}

// podNamespace is the namespace of the pod that runs this program.
func podNamespace() (string, error) {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("--leader-elect outside a cluster needs --leader-election-namespace")
	}
	return strings.TrimSpace(string(data)), nil
}
