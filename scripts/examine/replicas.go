package examine

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

var leases = []string{"leases.coordination.k8s.io"}

// replicas runs the program twice.
func replicas(r *run) error {
	if err := r.findRestored(); err != nil {
		return err
	}
	var taken Finding
	err := r.check("of two replicas one writes", func(t *trial) (one Finding, err error) {
		return t.twice(func(both []*operator) (Finding, error) {
			one, taken, err = t.takeOver(both)
			return one, err
		})
	})
	if err != nil || r.lastVerdict() != Passed || taken.Verdict == "" {
		return err
	}
	r.add("the other replica takes over", taken)
	if taken.Verdict != Passed {
		return nil
	}
	return r.check("a leader that was paused for longer than its lease no longer writes", func(t *trial) (Finding, error) {
		return t.twice(t.pausedLeader)
	})
}

// twice runs the program twice, until one replica has served the sample, and then calls f if there is a lease.
func (t *trial) twice(f func(both []*operator) (Finding, error)) (Finding, error) {
	t.operator.Kill()
	defer t.operator.Kill() // the next experiment starts it alone
	second, err := t.newOperator(t.Ctx, t.operator.user.Name+"-b", t.operator.flags)
	if err != nil {
		return Finding{}, err
	}
	defer t.giveBack(context.WithoutCancel(t.Ctx), second)
	t.operator.deleteLeases()
	mark := t.Mark()
	both := []*operator{t.operator, second}
	for _, o := range both {
		if _, err := o.launchReplica(o.elects()...); err != nil {
			return Finding{}, err
		}
	}
	_ = t.Eventually(30*time.Second, func() error {
		if len(ended(both)) > 0 {
			return nil // it never starts
		}
		return t.started(both, mark)
	})
	if err := t.started(both, mark); err != nil {
		return t.notTwice(both, mark, err), nil
	}
	if err := t.serve(); err != nil || len(ended(both)) > 0 {
		return t.notTwice(both, mark, err), nil
	}
	if t.fixture.Ledger.Count(ledger.Match{After: mark, Resources: leases}) == 0 {
		return t.withoutLease(both)
	}
	return f(both)
}

// started returns nil when one replica observes the sample's kind, and the other replica also observes it or has
// requested the lease.
func (t *trial) started(both []*operator, mark int) error {
	watching := 0
	for _, o := range both {
		if o.observes(mark) == nil {
			watching++
		} else if t.fixture.Ledger.Count(ledger.Match{Users: []string{o.user.Name}, After: mark, Resources: leases}) == 0 {
			return errors.New("a replica neither watches the sample's kind nor asks for a lease")
		}
	}
	if watching == 0 {
		return errors.New("no replica watches the sample's kind")
	}
	return nil
}

// ended are the replicas that do not run.
func ended(replicas []*operator) []*operator {
	return slices.DeleteFunc(slices.Clone(replicas), func(o *operator) bool { return o.Running() })
}

func (t *trial) notTwice(both []*operator, mark int, err error) Finding {
	for _, o := range both {
		if p := o.Process(); !p.Running() && strings.Contains(p.Output(), "address already in use") {
			return skipped("two replicas cannot listen on one port of this machine, as two pods can, and no known flag of the "+
				"program moves the port%s", words(p))
		} else if !p.Running() && strings.Contains(p.Output(), "unable to find leader election namespace") {
			return skipped("two replicas elect a leader only in a pod, from which the program takes the namespace of its "+
				"lease: it has no flag --leader-election-namespace%s", words(p))
		} else if !p.Running() {
			return skipped("two replicas could not be run: one %v%s", p.Exit(), words(p))
		}
	}
	forbidden := t.fixture.Ledger.Entries(ledger.Match{After: mark, Resources: leases,
		Where: func(e ledger.Entry) bool { return e.Code == http.StatusForbidden }})
	if len(forbidden) > 0 {
		return skipped("its lease was forbidden in the namespace %s: allow it there in ROLE=, or give the program a flag "+
			"--leader-election-namespace", forbidden[0].Namespace).with(lines(forbidden)...)
	}
	return failed("with two replicas: %v", err)
}

func (t *trial) writesOf(o *operator, mark int) []ledger.Entry {
	return t.fixture.Ledger.Entries(ledger.Match{Users: []string{o.user.Name}, Namespace: t.scope(),
		After: max(mark, t.Start),
		Verbs: wire.Writes, Except: ledger.Housekeeping})
}

// withoutLease finds out whether both replicas work. If one replica did all the work, it may only have been faster.
// So withoutLease pauses that replica: a replica that elects no leader then works at once, but a replica that waits
// for a lock would take longer.
func (t *trial) withoutLease(both []*operator) (Finding, error) {
	writer, other := both[0], both[1]
	if len(t.writesOf(writer, 0)) == 0 {
		writer, other = other, writer
	}
	if len(t.writesOf(other, 0)) == 0 && len(t.owns()) > 0 {
		if err := writer.Process().Pause(); err != nil {
			return Finding{}, err
		}
		c := t.restored
		if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
			return Finding{}, err
		}
		_ = t.Eventually(5*time.Second, func() error {
			if len(t.writesOf(other, 0)) == 0 {
				return errors.New("the other replica has not written")
			}
			return nil
		})
	}
	a, b := t.writesOf(writer, 0), t.writesOf(other, 0)
	if len(b) > 0 {
		return failed("it has no lease, and two replicas both write: %d and %d writes for one sample", len(a), len(b)).
			with(append(lines(a), lines(b)...)...), nil
	}
	return skipped("it has no lease: one replica wrote %d times, the other 0 times", len(a)), nil
}

// heldByBoth returns the holder of a lease that each of two living replicas writes, which have the same identity.
func (t *trial) heldByBoth(both []*operator) (holder string, err error) {
	held := map[types.NamespacedName]int{}
	for _, o := range both {
		own := map[types.NamespacedName]bool{}
		for _, e := range t.fixture.Ledger.Entries(ledger.Match{Users: []string{o.user.Name}, After: t.Start,
			Verbs: wire.Writes, Resources: leases}) {
			if e.Committed() {
				own[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = true
			}
		}
		for name := range own {
			held[name]++
		}
	}
	for name, n := range held {
		lease, err := t.fixture.Kube.CoordinationV1().Leases(name.Namespace).Get(t.Ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if n == len(both) {
			return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
		}
	}
	return "", nil
}

// takeOver looks whether one replica writes, and kills the leader while there is work: taken is the finding about the
// other replica, and empty when this was not tried.
func (t *trial) takeOver(both []*operator) (one, taken Finding, err error) {
	host, err := os.Hostname()
	if err != nil {
		return one, taken, err
	}
	var holder string
	_ = t.Eventually(3*time.Second, func() error { // each replica tries to take the lease about every 2 s
		if holder, err = t.heldByBoth(both); holder == "" && err == nil {
			return errNothing
		}
		return nil
	})
	switch {
	case err != nil:
		return one, taken, err
	case len(ended(both)) > 0: // it started, and ended later
		return t.notTwice(both, t.Start, nil), taken, nil
	case strings.Contains(holder, host):
		return skipped("both replicas run on this machine, and have the same identity in their lease, %q: in a cluster each "+
			"pod has its own name", holder), taken, nil
	case holder != "":
		return failed("both replicas hold the lease, as %q", holder), taken, nil
	}
	leader, other := both[0], both[1]
	if len(t.writesOf(leader, 0)) == 0 {
		leader, other = other, leader
	}
	if writes := t.writesOf(other, 0); len(writes) > 0 {
		return failed("both replicas write, though there is a lease").with(append(lines(t.writesOf(leader, 0)),
			lines(writes)...)...), taken, nil
	}
	one = passed("one replica sent all %d writes, the other none", len(t.writesOf(leader, 0)))
	if len(t.owns()) == 0 || t.target.Fast {
		t.leftOut("take-overs by the other replica", 1, 1)
		return one, taken, nil
	}
	mark, begin := t.Mark(), time.Now()
	leader.Kill()
	c := t.restored
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return one, taken, err
	}
	err = t.Eventually(60*time.Second, func() error {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err == nil && u.GetDeletionTimestamp() != nil {
			return errors.New("it is being deleted")
		}
		return err
	})
	switch {
	case len(ended([]*operator{other})) > 0:
		taken = t.notTwice([]*operator{other}, mark, err)
	case err != nil && t.unrestored:
		taken = skipped("without a disturbance, a deleted %s does not come back, either", c)
	case err != nil:
		taken = failed("60 s after the leader was killed the other has not restored %s: %v", c, err)
	case len(t.writesOf(other, mark)) == 0:
		taken = failed("%s came back, and the other replica did not write it", c)
	default:
		taken = passed("%.0f s after the leader was killed the other replica had restored %s", time.Since(begin).Seconds(), c)
	}
	return one, taken, nil
}
