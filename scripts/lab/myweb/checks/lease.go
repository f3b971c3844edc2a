package checks

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// leaderChecks are the checks of the leader.
var leaderChecks = []suite.Check{
	{ID: "fault/16-leader-stopped", Alone: true, Within: 3 * time.Minute, Run: leaderStopped,
		Title: "a leader that was paused for longer than its lease does not write any more"},
	{ID: "fault/16-lease-stolen", Alone: true, Run: leaseStolen,
		Title: "a leader that lost its lease stops writing before its lease would have expired"},
}

// leases are where the operators keep their leases.
func leases(t *suite.T) coordinationclient.LeaseInterface {
	return t.Fixture.Kube.CoordinationV1().Leases(suite.LeaseNamespace)
}

// lease is the lease in the namespace of the leases; an empty one when there is none.
func lease(t *suite.T) *coordinationv1.Lease {
	list, err := leases(t).List(t.Ctx, metav1.ListOptions{})
	t.Must(err, "list the leases")
	if len(list.Items) == 0 {
		return &coordinationv1.Lease{}
	}
	return &list.Items[0]
}

// leaseStolen writes another name into the lease, and keeps the lease for an hour.
func leaseStolen(t *suite.T) {
	elect(t)
	t.Serve("web", suite.Sample())
	length := 15 * time.Second
	if s := lease(t).Spec.LeaseDurationSeconds; s != nil {
		length = time.Duration(*s) * time.Second
	}
	t.Eventually("the lease is stolen", 0, func() error {
		l, now := lease(t), metav1.NowMicro()
		l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime = new("thief"), &now, &now
		l.Spec.LeaseDurationSeconds = new(int32(3600))
		_, err := leases(t).Update(t.Ctx, l, metav1.UpdateOptions{})
		return err
	})
	select { // an operator that ends has ended by then
	case <-t.Operator.Process().Ended():
	case <-time.After(length):
	}
	mark := t.Mark()
	t.SetPage("web", "<h1>changed</h1>")
	t.Remove(suite.Services, "web")
	t.Pause(3 * time.Second)
	wantSteppedDown(t, t.Operator, mark)
	if holder := lease(t).Spec.HolderIdentity; holder == nil || *holder != "thief" {
		t.Errorf("the lease, which is another's for an hour, is held by %v", holder)
	}
}
