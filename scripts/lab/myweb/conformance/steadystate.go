package conformance

import (
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func nothingInSteadyState(t *suite.T) {
	t.Serve("web", asking(t.NodePort()))
	t.StaysQuiet(time.Second)
	touch(t, "web")
	t.StaysQuiet(time.Second)
}

// touch labels a MyWeb and its children: the operator reconciles them, and the labels have no other effect. An
// annotation would have one, because it gives a Deployment a new generation.
func touch(t *suite.T, name string) {
	const label = `{"metadata":{"labels":{"example.com/team":"a"}}}`
	t.Edit(suite.Resource, name, label)
	for _, k := range suite.Kinds {
		t.Edit(k, name, label)
	}
}

func nothingAfterRestart(t *suite.T) {
	none := suite.Sample()
	none.Replicas = new(int32(0))
	for name, spec := range map[string]suite.WebSpec{"plain": suite.Sample(), "port": asking(t.NodePort()), "none": none} {
		t.Create(name, spec)
	}
	for _, name := range []string{"plain", "port", "none"} {
		t.Completed(name)
	}
	t.AwaitQuiet(quiet)
	mark := t.Mark()
	t.Must(t.Operator.Restart(t.Context()), "restart the operator")
	t.Pause(700 * time.Millisecond)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Unexpected(writes, "expected no write after a restart; but the operator sent %d", len(writes))
	}
}

// quick is how long a rollout takes when the machine has time for it. Extra status writes during a slower rollout are
// not waste.
const quick = 4 * time.Second

// costs judges three MyWebs, because sometimes the pods of a MyWeb become ready all at once, and then one status
// write for each pod looks like one for all pods. When rollouts take long, it judges only the last MyWeb, and only if
// it judged no other.
func costs(t *suite.T, replicas int32) {
	judged, names := 0, []string{"web", "again", "and-again"}
	for i, name := range names {
		spec := suite.Sample()
		spec.Replicas = &replicas
		mark, begin := t.Mark(), time.Now()
		web := t.Create(name, spec)
		t.Completed(name)
		took := time.Since(begin)
		t.AwaitQuiet(quiet)
		reads := t.Fixture.Ledger.Entries(readsBeside(t, mark))
		all, status := suite.About(t.Writes(mark), suite.Kinds...),
			suite.About(t.Writes(mark), suite.Resource, suite.StatusResource)
		if took > quick && len(status) > 2 && (judged > 0 || i < len(names)-1) {
			t.Logf("it took %v to serve %s, and %d writes of status: not judged", took, web.Name, len(status))
			continue
		}
		judged++
		if len(all) != 3 {
			t.Errorf("expected 3 writes of children; but the operator sent %d:%s", len(all), suite.Lines(all))
		}
		if len(status) > 2 {
			t.Errorf("expected at most 2 writes of status; but the operator sent %d:%s", len(status), suite.Lines(status))
		}
		if len(reads) > 0 {
			t.Unexpected(reads, "expected no read, since all is in the caches; but the operator sent %d", len(reads))
		}
	}
}

// readsBeside are the operator's reads of resources in the check's namespace and of resources in all namespaces.
func readsBeside(t *suite.T, mark int) ledger.Match {
	return ledger.Match{Verbs: []string{wire.Get, wire.List}, After: mark, Except: ledger.Housekeeping,
		Where: func(e ledger.Entry) bool {
			return e.Resource != "" && (e.Namespace == "" || e.Namespace == t.Namespace) &&
				strings.HasPrefix(e.User, t.Operator.User.Name)
		}}
}
