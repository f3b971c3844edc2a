package checks

import (
	"context"
	"fmt"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Time limits of a handover. The other replica asks for the lease every few seconds, and gets a released lease at its
// next request. A lease that is not released must expire: usually 15 s after that replica saw its last renewal.
const (
	givenBack = 10 * time.Second
	runOut    = 35 * time.Second
	// slowWrite is how long the last write of a leader that is asked to stop takes.
	slowWrite = 3 * time.Second
)

// elect restarts the operator with leader election, and without an old lease for which it would wait.
func elect(t *suite.T) {
	t.Operator.Kill()
	forget := func(ctx context.Context) error {
		return leases(t).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	t.Must(forget(t.Ctx), "delete old leases")
	t.Cleanup(func(ctx context.Context) { // the runner restarts the operator, without a lease
		t.Operator.Kill()
		_ = forget(ctx)
	})
	t.Must(t.Operator.Start(t.Ctx, electing(t)...), "start the operator with leader election")
}

func electing(t *suite.T) []string {
	return append([]string{"--leader-elect"},
		t.Operator.Impl.With("--leader-election-namespace="+suite.LeaseNamespace)...)
}

// secondReplica starts a second replica of an operator that elect started, with a separate user. It returns when that
// replica asks for the lease.
func secondReplica(t *suite.T) *suite.Operator {
	second, err := suite.NewOperator(t.Ctx, t.Fixture, t.Operator.Impl, t.Operator.User.Name+"-b")
	t.Must(err, "make a second replica")
	second.Env = t.Operator.Env
	t.Cleanup(func(context.Context) { second.Kill() })
	mark := t.Mark()
	p, err := second.Launch(electing(t)...)
	t.Must(err, "start a second replica")
	ctx, stop := p.Context(t.Ctx)
	defer stop()
	t.Must(t.Fixture.Ledger.Await(ctx, 1, second.Requests(),
		ledger.Match{Resources: []string{"leases.coordination.k8s.io"}, After: mark}), "wait for the second replica")
	return second
}

// writesOf are the writes of one replica in the check's namespace.
func writesOf(t *suite.T, o *suite.Operator, mark int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(o.Requests(),
		ledger.Match{Namespace: t.Namespace, After: max(mark, 1), Except: ledger.Housekeeping, Verbs: wire.Writes})
}

// twoReplicas starts the operator twice, with leader election. It serves some MyWebs and returns the replica that did
// the work, and the replica that did not.
func twoReplicas(t *suite.T) (leader, other *suite.Operator) {
	elect(t)
	leader, other = t.Operator, secondReplica(t)
	mark := t.Mark()
	for i := range 3 {
		t.Create(fmt.Sprintf("web-%d", i), suite.Sample())
	}
	for i := range 3 {
		t.Served(fmt.Sprintf("web-%d", i), "is completed", 30*time.Second)
	}
	t.AwaitQuiet(quiet)
	if len(writesOf(t, leader, mark)) == 0 {
		leader, other = other, leader
	}
	if writes := writesOf(t, other, mark); len(writes) > 0 {
		t.Errorf("expected that one replica writes; but both write:%s\nthe other one:%s",
			suite.Lines(writesOf(t, leader, mark)), suite.Lines(writes))
	}
	return leader, other
}

func oneWrites(t *suite.T) {
	leader, other := twoReplicas(t)
	mark := t.Mark()
	for i := range 3 {
		t.SetPage(fmt.Sprintf("web-%d", i), "<h1>Next</h1>")
	}
	for i := range 3 {
		t.Completed(fmt.Sprintf("web-%d", i))
	}
	t.AwaitQuiet(quiet)
	if len(writesOf(t, leader, mark)) == 0 {
		t.Errorf("%s led, and did not write", leader.User.Name)
	}
	if writes := writesOf(t, other, mark); len(writes) > 0 {
		t.Unexpected(writes, "expected that only %s writes, which leads; but %s sent %s", leader.User.Name, other.User.Name,
			suite.Count(len(writes), "write"))
	}
}

func leaderStops(t *suite.T) {
	leader, other := twoReplicas(t)
	mark := t.Mark()
	answered, answer := context.WithCancel(t.Ctx)
	defer answer()
	slow := t.Everywhere(proxy.Rule{
		Times: 1, Match: ledger.Match{Users: []string{leader.User.Name}, Namespace: t.Namespace, Verbs: wire.Writes},
		Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
			<-answered.Done() // also when the leader gives up: the server may still execute a cancelled request
			return proxy.Action{}
		})})
	t.SetPage("web-1", "<h1>The last of the old leader</h1>")
	t.AwaitFault(slow, 1, givenBack)
	holder := lease(t).Spec.HolderIdentity
	t.Act("the replica that leads got SIGTERM")
	t.Must(leader.Process().Signal(syscall.SIGTERM), "stop the leader")
	t.Pause(slowWrite)
	holds := ptr.Equal(lease(t).Spec.HolderIdentity, holder)
	answer()
	if !holds {
		t.Errorf("expected one writer at a time; but the leader gave its lease back before its last write was answered")
	}
	takesOver(t, leader, other, mark, givenBack-slowWrite)
}

// leaderStopped pauses the leader for longer than its lease. When the leader goes on, there is work that the new leader
// does not see: only the old leader could do it.
func leaderStopped(t *suite.T) {
	leader, other := twoReplicas(t)
	mark, begin := t.Mark(), time.Now()
	t.Must(leader.Process().Pause(), "stop the leader")
	takesOver(t, leader, other, mark, time.Minute)
	t.Pause(time.Until(begin.Add(20 * time.Second)))
	t.AwaitQuiet(quiet)
	frozen := t.Everywhere(proxy.Rule{
		Match: ledger.Match{Users: []string{other.User.Name}, Verbs: []string{wire.Watch}}, Do: proxy.Freeze()})
	t.Remove(suite.ConfigMaps, "web-2")
	mark = t.Mark()
	t.Must(leader.Process().Resume(), "let the old leader go on")
	for n := range 6 {
		t.Pause(500 * time.Millisecond)
		t.SetPage("web-2", fmt.Sprintf("<h1>changed %d times</h1>", n+1))
	}
	wantSteppedDown(t, leader, mark)
	frozen.Release()
	t.Served("web-2", "is completed by the new leader", patience)
}

// wantSteppedDown fails when the old leader has changed an object since a mark. It may have ended, or wait with the
// other replicas.
func wantSteppedDown(t *suite.T, old *suite.Operator, mark int) {
	changes := t.Fixture.Ledger.Entries(ledger.Changes, old.Requests(), ledger.Match{After: mark})
	if len(changes) > 0 {
		t.Errorf("%d changes by the old leader: %s", len(changes), suite.Lines(changes))
	}
	wantNoPanic(t, true)
}

func leaderDies(t *suite.T) {
	leader, other := twoReplicas(t)
	mark := t.Mark()
	leader.Kill()
	takesOver(t, leader, other, mark, runOut)
}

// takesOver changes MyWebs until the other replica writes. It fails the check when this takes too long, or when the
// old leader still wrote at that time.
func takesOver(t *suite.T, leader, other *suite.Operator, mark int, within time.Duration) {
	n := 0
	t.Eventually(other.User.Name+" takes over", within, func() error {
		if len(writesOf(t, other, mark)) > 0 {
			return nil
		}
		n++
		t.SetPage("web-0", fmt.Sprintf("<h1>Change %d</h1>", n))
		t.Pause(200 * time.Millisecond) // a paused leader reads no events, which must not fill its connections
		return fmt.Errorf("it wrote nothing, %s wrote %d times", leader.User.Name, len(writesOf(t, leader, mark)))
	})
	t.Completed("web-0")
	t.Settled("web-1")
	first := writesOf(t, other, mark)[0]
	for _, e := range writesOf(t, leader, mark) {
		if end := e.Start.Add(e.Took); e.Open || end.After(first.Start) {
			t.Errorf("expected one writer at a time; but both wrote at once; the old leader: %s, the new one: %s", e, first)
		}
	}
}
