package conformance

import (
	"fmt"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
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

// replicas are two processes of the implementation, each with a separate user.
type replicas [2]*suite.Operator

// twoReplicas ends the operator and starts it twice, with leader election.
func twoReplicas(t *suite.T) replicas {
	t.Elect()
	return replicas{t.Operator, t.Second()}
}

// writesOf are the writes of one replica in the check's namespace.
func writesOf(t *suite.T, o *suite.Operator, mark int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(ledger.Match{Users: []string{o.User.Name},
		Namespace: t.Namespace, After: max(mark, 1), Except: ledger.Housekeeping, Verbs: childWrites.Verbs})
}

// leader serves some MyWebs and returns the replica that did the work, and the replica that did not.
func (r replicas) leader(t *suite.T) (leader, other *suite.Operator) {
	mark := t.Mark()
	for i := range 3 {
		t.Create(fmt.Sprintf("web-%d", i), suite.Sample())
	}
	for i := range 3 {
		t.Served(fmt.Sprintf("web-%d", i), "is completed", 30*time.Second)
	}
	t.AwaitQuiet(quiet)
	leader, other = r[0], r[1]
	if len(writesOf(t, leader, mark)) == 0 {
		leader, other = other, leader
	}
	if writes := writesOf(t, other, mark); len(writes) > 0 {
		t.Errorf("expected that one replica writes; but both do; %s:%s\nand %s:%s", leader.User.Name,
			suite.Lines(writesOf(t, leader, mark)), other.User.Name, suite.Lines(writes))
	}
	return leader, other
}

func oneWrites(t *suite.T) {
	leader, other := twoReplicas(t).leader(t)
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
		t.Unexpected(writes, "expected that only %s writes, which leads; but %s sent %d", leader.User.Name, other.User.Name,
			len(writes))
	}
}

func leaderStops(t *suite.T) {
	leader, other := twoReplicas(t).leader(t)
	mark := t.Mark()
	slow := t.Everywhere(proxy.Rule{
		Times: 1, Match: ledger.Match{Users: []string{leader.User.Name}, Namespace: t.Namespace, Verbs: childWrites.Verbs},
		Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
			time.Sleep(slowWrite) // also when the leader gives up: the server may still execute a cancelled request
			return proxy.Action{}
		})})
	t.SetPage("web-1", "<h1>The last of the old leader</h1>")
	t.AwaitFault(slow, 1, givenBack)
	t.Must(leader.Process().Signal(syscall.SIGTERM), "stop the leader")
	takesOver(t, leader, other, mark, givenBack)
}

func leaderDies(t *suite.T) {
	leader, other := twoReplicas(t).leader(t)
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
		return fmt.Errorf("it wrote nothing, %s wrote %d times", leader.User.Name, len(writesOf(t, leader, mark)))
	})
	t.Completed("web-0")
	t.Completed("web-1")
	t.AwaitQuiet(quiet)
	first := writesOf(t, other, mark)[0]
	for _, e := range writesOf(t, leader, mark) {
		if end := e.Start.Add(e.Took); e.Open || end.After(first.Start) {
			t.Errorf("expected one writer at a time; but both wrote at once; the old leader: %s, the new one: %s", e, first)
		}
	}
}
