package faults

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// leaderChecks are the checks of the leader.
var leaderChecks = []suite.Check{
	{ID: "fault/16-leader-stopped", Alone: true, Within: 3 * time.Minute, Run: leaderStopped,
		Title: "a leader that was paused for longer than its lease does not write any more"},
	{ID: "fault/16-lease-stolen", Alone: true, Run: leaseStolen,
		Title: "a leader that lost its lease stops writing before its lease would have expired"},
}

// elect restarts the operator with leader election and returns when it leads.
func elect(t *suite.T) {
	t.Elect()
	t.Eventually("the operator leads", patience, func() error {
		if l := lease(t); l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
			return fmt.Errorf("no replica holds a lease in %s", suite.LeaseNamespace)
		}
		return nil
	})
}

// lease is the lease in the namespace of the leases; nil when there is none.
func lease(t *suite.T) *coordinationv1.Lease {
	list, err := t.Leases().List(t.Context(), metav1.ListOptions{})
	t.Must(err, "list the leases")
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// writesOf are the changes of one user since a mark, in all namespaces.
func writesOf(t *suite.T, user string, after int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(ledger.Changes, ledger.Match{Users: []string{user}, After: after})
}

func leaderStopped(t *suite.T) {
	elect(t)
	t.Serve("web", suite.Sample())
	old := *lease(t).Spec.HolderIdentity
	second := t.Second()
	t.AwaitQuiet(time.Second)

	first := t.Operator.Process()
	t.Must(first.Pause(), "stop the leader")
	begin := time.Now()
	t.Eventually("the second replica leads", time.Minute, func() error {
		if l := lease(t); l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" ||
			*l.Spec.HolderIdentity == old {
			return fmt.Errorf("the lease is held by %s", old)
		}
		return nil
	})
	t.Create("second", suite.Sample())
	t.Served("second", "is completed by the second replica", patience)
	t.Pause(time.Until(begin.Add(20 * time.Second)))
	t.AwaitQuiet(300 * time.Millisecond)
	// The new leader does not see this work: only the old leader could do it.
	frozen := t.Everywhere(proxy.Rule{
		Match: ledger.Match{Users: []string{second.User.Name}, Verbs: []string{wire.Watch}}, Do: proxy.Freeze()})
	t.Remove(suite.ConfigMaps, "web")
	t.SetPage("second", "<h1>changed</h1>")
	mark := t.Mark()
	t.Must(first.Resume(), "let the old leader go on")
	for n := range 6 {
		t.Pause(500 * time.Millisecond)
		t.SetPage("web", fmt.Sprintf("<h1>changed %d times</h1>", n+1))
	}
	wantSteppedDown(t, mark)
	frozen.Release()
	t.Served("web", "is completed by the new leader", patience)
}

// wantSteppedDown fails when the old leader has changed an object since a mark. It may have ended, or wait with the
// other replicas.
func wantSteppedDown(t *suite.T, mark int) {
	if changes := writesOf(t, t.Operator.User.Name, mark); len(changes) > 0 {
		t.Errorf("%d changes by the old leader: %s", len(changes), suite.Lines(changes))
	}
	wantNoPanic(t, true)
}

// leaseStolen writes another name into the lease, and keeps the lease for an hour.
func leaseStolen(t *suite.T) {
	elect(t)
	t.Serve("web", suite.Sample())
	l := lease(t)
	length := 15 * time.Second
	if s := l.Spec.LeaseDurationSeconds; s != nil {
		length = time.Duration(*s) * time.Second
	}
	t.Eventually("the lease is stolen", 0, func() error {
		l = lease(t)
		now := metav1.NowMicro()
		l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime = new("thief"), &now, &now
		l.Spec.LeaseDurationSeconds = new(int32(3600))
		_, err := t.Leases().Update(t.Context(), l, metav1.UpdateOptions{})
		return err
	})
	stolen := time.Now()
	select { // an operator that ends has ended by then
	case <-t.Operator.Process().Ended():
	case <-time.After(length):
	}
	t.Logf("%v after the theft the operator runs: %v", time.Since(stolen).Round(time.Second), t.Operator.Running())
	mark := t.Mark()
	t.SetPage("web", "<h1>changed</h1>")
	t.Remove(suite.Services, "web")
	t.Pause(3 * time.Second)
	wantSteppedDown(t, mark)
	if holder := lease(t).Spec.HolderIdentity; holder == nil || *holder != "thief" {
		t.Errorf("the lease, which is another's for an hour, is held by %v", holder)
	}
}
