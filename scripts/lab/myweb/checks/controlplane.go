package checks

import (
	"context"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// controlPlaneChecks are the checks of the control plane.
var controlPlaneChecks = []suite.Check{
	{ID: "fault/13-apiserver-away-5s", Alone: true, Within: 3 * time.Minute,
		Run:   apiServerAway(5 * time.Second),
		Title: "a kube-apiserver that is killed and back after 5 s is found again; the children are as before"},
	{ID: "fault/13-apiserver-away-60s", Alone: true, Within: 5 * time.Minute,
		Run:   apiServerAway(time.Minute),
		Title: "a kube-apiserver that is killed and back after 60 s is found again; the children are as before"},
	{ID: "fault/14-etcd-hangs", Alone: true, Run: etcdAway(syscall.SIGSTOP, resumeEtcd),
		Title: "while etcd hangs for 5 s nothing is shown as failed; the write is done after it"},
	{ID: "fault/14-etcd-killed", Alone: true, Run: etcdAway(syscall.SIGKILL, restartEtcd),
		Title: "writes that etcd's end refuses are tried again when it is back; the children are as before"},
	{ID: "fault/15-crd-missing", Alone: true, Run: crdMissing,
		Title: "without the CRD the operator ends with a message about it, or waits for it; no trace, no hot loop"},
	{ID: "fault/15-crd-removed", Alone: true, Within: 3 * time.Minute, Run: crdRemoved,
		Title: "a CRD that is removed under the operator and restored is served again"},
}

// reconnected is how long an operator may take to reconnect when the control plane is back: client-go's backoff grows
// to 30 s, and its jitter can double that.
const reconnected = 90 * time.Second

// nodeLease is how long the lease of a killed kubelet lasts: a new kubelet waits for its end.
const nodeLease = 40 * time.Second

// repair starts the components that are gone. It also restarts the controllers, because their backoff has grown, too.
func repair(t *suite.T, away time.Duration) {
	components := []string{fixture.ControllerManager, fixture.Scheduler}
	if away > nodeLease {
		components = append(components, fixture.Kubelets)
	}
	for _, component := range components {
		_ = t.Fixture.Signal(component, syscall.SIGKILL) // it may have ended by itself
	}
	t.Pause(100 * time.Millisecond)
	t.Must(t.Fixture.Repair(t.Ctx), "start the control plane again")
}

// repaired repairs the fixture for the next check, however this check ends.
func repaired(t *suite.T) {
	renew(t)
	t.Cleanup(func(ctx context.Context) {
		_ = t.Fixture.Signal(fixture.Etcd, syscall.SIGCONT) // usually it is running
		if err := t.Fixture.Repair(ctx); err != nil {
			t.Errorf("repair the control plane: %v", err)
		}
	})
}

func apiServerAway(d time.Duration) func(*suite.T) {
	return func(t *suite.T) {
		repaired(t)
		before := t.Children(t.Serve("web", suite.Sample()))
		mark := t.Mark()
		t.Must(t.Fixture.Signal(fixture.APIServer, syscall.SIGKILL), "kill kube-apiserver")
		t.Pause(d)
		wantAlive(t)
		if n, most := requestsSince(t, mark), 20+int(d.Seconds())*10; n > most {
			t.Errorf("%d requests in %v without an API server, more than %d", n, d, most)
		}
		repair(t, d)
		t.SetPage("web", "<h1>after it</h1>")
		t.Create("second", suite.Sample())
		t.Served("web", "is completed", reconnected)
		t.Served("second", "is completed", reconnected)
		_, after := converged(t, "web")
		t.SameChildren(before, after)
		wantMade(t, mark, 1, suite.Kinds...) // those of the second MyWeb
		wantSound(t)
	}
}

// etcdAway holds the operator's write of a changed page, and releases it while etcd hangs or is gone. When etcd is
// back, the same children serve the changed page, and no status showed a failure.
func etcdAway(s syscall.Signal, back func(t *suite.T)) func(*suite.T) {
	return func(t *suite.T) {
		repaired(t)
		before := t.Children(t.Serve("web", suite.Sample()))
		mark := t.Mark()
		held := hold(t, suite.Kinds...)
		t.SetPage("web", "<h1>changed</h1>")
		t.AwaitFault(held, 1, patience)
		t.Must(t.Fixture.Signal(fixture.Etcd, s), "stop or kill etcd")
		held.Release()
		t.Pause(5 * time.Second)
		wantAlive(t)
		if n := len(t.Writes(mark)); n > mostTries {
			t.Errorf("%d writes in 5 s without etcd: %s", n, suite.Lines(t.Writes(mark)))
		}
		back(t)
		t.Served("web", "is completed", reconnected)
		inPlace(t, before, mark, 0)
		t.Warned("web", 0, 0)
		wantSound(t)
	}
}

func resumeEtcd(t *suite.T) {
	t.Must(t.Fixture.Signal(fixture.Etcd, syscall.SIGCONT), "let etcd go on")
}

func restartEtcd(t *suite.T) { repair(t, 5*time.Second) }

// requestsSince counts the operator's requests since a mark, in all namespaces.
func requestsSince(t *suite.T, mark int) int {
	return t.Fixture.Ledger.Count(t.Operator.Requests(), ledger.Match{After: mark})
}
