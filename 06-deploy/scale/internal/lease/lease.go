// Package lease elects a leader among the replicas of the operator, and keeps a replica without the lease from writing.
package lease

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Demanded by fault/16-leader-stopped: a process that was suspended for longer than its lease resumes in the
// middle of its work, and must not write any more. The manager elects, renews and releases; Lock
// knows, at each write, whether the lease is still held.

const (
	// Name is the same for the operators of chapters 03 and 04, so only one of the two works. Without
	// leases both would write: the objects are right in the end, because both have the same desired state, but ten
	// MyWebs cost 74 writes instead of 50.
	Name = "myweb-operator"
	// A leader that cannot renew for renewDeadline stops; the others take over leaseDuration after they saw
	// its last renewal. They try every retryPeriod to 2.2 times that: with the usual 2 s it could take more
	// than 4 s until another replica takes a released lease.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = time.Second
)

// Elect makes the manager work only while it holds a lease. It returns a configuration for its requests.
func Elect(cfg *rest.Config, options *ctrl.Options) (*rest.Config, error) {
	held, err := newLock(cfg, options.LeaderElectionNamespace)
	if err != nil {
		return nil, err
	}
	options.LeaderElectionID, options.LeaderElectionResourceLockInterface = Name, held
	options.LeaseDuration, options.RenewDeadline = new(leaseDuration), new(renewDeadline)
	options.RetryPeriod = new(retryPeriod)
	options.LeaderElectionReleaseOnCancel = true // the manager does it last, and the program ends right after
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(held.RoundTripper)
	return cfg, nil
}

// newLock returns a lease in the given namespace, or in the pod's namespace when the argument is empty. Its requests
// must not pass the fence.
func newLock(cfg *rest.Config, namespace string) (*Lock, error) {
	cfg = rest.CopyConfig(cfg)
	lock, err := leaderelection.NewResourceLock(cfg, noEvents{}, leaderelection.Options{LeaderElection: true,
		LeaderElectionID: Name, LeaderElectionNamespace: namespace, RenewDeadline: renewDeadline})
	if err != nil {
		return nil, fmt.Errorf("--leader-elect, which outside a cluster needs --leader-election-namespace: %w", err)
	}
	return NewLock(lock), nil
}

// noEvents records no events of the election: they would need one more permission.
type noEvents struct{ recorder.Provider }

func (noEvents) GetEventRecorderFor(string) record.EventRecorder { return nil }
