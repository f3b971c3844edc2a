package shard

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// A Lock is the lease of a range. It is acquired only while no other replica holds a lease whose range overlaps: when
// the number of shards changes, replicas with the old ranges and with the new ones run at the same time.
type Lock struct {
	resourcelock.Interface
	held   func() bool
	own    Range
	leases coordinationclient.LeaseInterface
	seen   map[string]sighting
}

// A sighting is a renewal of a lease, and when this process saw it first: the clocks of two machines may differ.
type sighting struct {
	renewed metav1.MicroTime
	since   time.Time
}

// NewLock returns the lease of a range for a process, not held yet. The function held reports whether the process holds
// it: since it began the last renewal, the duration of the lease has not passed.
func NewLock(c coordinationclient.LeasesGetter, namespace, identity string, own Range, held func() bool) *Lock {
	return &Lock{held: held, own: own, leases: c.Leases(namespace), seen: map[string]sighting{},
		Interface: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: own.lease()},
			Client: c, LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}}
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write acquires, renews or releases the lease. Two replicas that acquire at the same time both write first, and then
// both read: at least one sees the other, and releases. A renewal needs no look at the others, unless it came too late:
// a process that was frozen meanwhile acquires anew.
func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if record.HolderIdentity != l.Identity() { // a release
		return send(ctx, record)
	}
	renewed := l.held()
	if !renewed {
		if err := l.conflict(ctx); err != nil {
			return err
		}
	}
	if err := send(ctx, record); err != nil {
		return err
	}
	if renewed && l.held() {
		return nil
	}
	err := l.conflict(ctx)
	if err != nil {
		record.HolderIdentity, record.LeaseDurationSeconds = "", 1
		_ = l.Interface.Update(ctx, record) // else it expires
	}
	return err
}

// conflict returns an error that names another replica's lease which overlaps. A lease counts as held until its
// duration has passed without a renewal that this process saw.
func (l *Lock) conflict(ctx context.Context) error {
	list, err := l.leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the leases of other shards: %w", err)
	}
	for _, lease := range list.Items {
		other, ours := RangeOf(lease.Name)
		if !ours || other == l.own || !other.overlaps(l.own) {
			continue
		}
		holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
		last, known := l.seen[lease.Name]
		if !known || !last.renewed.Equal(&renewed) {
			last = sighting{renewed, time.Now()}
			l.seen[lease.Name] = last
		}
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		if holder != "" && time.Since(last.since) < duration {
			return fmt.Errorf("lease %s of %s overlaps", lease.Name, holder)
		}
	}
	return nil
}
