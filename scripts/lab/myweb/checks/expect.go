package checks

import (
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// accepted returns the entries that the API server answered with success.
func accepted(entries []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !e.Accepted() })
}

// onlyWrites fails the check unless the operator wrote after the mark only one child of each given resource, once.
// Writes of it that were refused as a conflict do not count.
func onlyWrites(t *suite.T, mark int, resources ...string) {
	writes := t.Writes(mark)
	for _, k := range suite.Kinds {
		some := suite.About(writes, k)
		if mine := accepted(some); slices.Contains(resources, k) && len(mine) != 1 {
			t.Errorf("expected 1 write of %s; but the operator sent %s:%s", k, suite.Count(len(mine), "write"), suite.Lines(mine))
		} else if !slices.Contains(resources, k) && len(some) > 0 {
			t.Unexpected(some, "expected no write of %s; but the operator sent %s", k, suite.Count(len(some), "write"))
		}
	}
}

// made counts the objects of a resource that the operator created since a mark, of one name or of all.
func made(t *suite.T, after int, resource, name string) (n int) {
	for _, e := range t.Writes(after) {
		if e.FullResource() == resource && (name == "" || e.Name == name) {
			n += len(slices.DeleteFunc(slices.Clone(e.Served), func(code int) bool { return code != 201 }))
		}
	}
	return n
}

// wantMade fails when the operator has not created exactly n objects of each resource since a mark, or has deleted an
// object.
func wantMade(t *suite.T, after, n int, resources ...string) {
	for _, resource := range resources {
		if got := made(t, after, resource, ""); got != n {
			t.Errorf("%s: %d made, wanted %d:\n%s", resource, got, n, suite.Lines(t.Writes(after)))
		}
	}
	wantNoDelete(t, after)
}

// wantNoDelete fails when the operator has deleted an object since a mark.
func wantNoDelete(t *suite.T, after int) {
	if deletes := t.Requests(after, wire.Delete, wire.DeleteCollection); len(deletes) > 0 {
		t.Errorf("the operator deleted, which it need not:\n%s", suite.Lines(deletes))
	}
}

// wantNoWrite fails when the operator has written an object since a mark.
func wantNoWrite(t *suite.T, after int) { wantNone(t, t.Writes(after)) }

// wantNone fails when there is a write.
func wantNone(t *suite.T, writes []ledger.Entry) {
	if len(writes) == 0 {
		return
	}
	const most = 3
	sent, fields := suite.Count(len(writes), "write"), t.Fixture.Ledger.Fields(writes...)
	if len(fields) == 0 {
		t.Unexpected(writes, "expected no write; but the operator sent %s", sent)
		return
	}
	t.Unexpected(writes, "expected no write; but the operator sent %s, and changed %s", sent,
		strings.Join(fields[:min(len(fields), most)], ", "))
}

// wantNoPanic fails when the operator has printed a panic: in lines about the check's namespace, or in any line when
// the check has the operator alone.
func wantNoPanic(t *suite.T, alone bool) {
	for _, line := range strings.Split(t.Operator.Process().Output(), "\n") {
		if strings.Contains(strings.ToLower(line), "panic") && (alone || strings.Contains(line, t.Namespace)) {
			t.Errorf("a panic: %s", line)
			return
		}
	}
}

// wantAlive fails when the operator's process has ended.
func wantAlive(t *suite.T) {
	if !t.Operator.Running() {
		t.Fatalf("the operator is gone: it %v", t.Operator.Process().Exit())
	}
}

// wantSound fails when the process has ended, or has printed a panic. The check has the operator alone.
func wantSound(t *suite.T) {
	wantAlive(t)
	wantNoPanic(t, true)
}

// Limits of retries in a window in which every try is refused. client-go's backoff from 5 ms on makes 10 tries in the
// window, 1 of them in its second half; the limits are three times that, because an operator may also try its other
// children.
const (
	window    = 4 * time.Second
	mostTries = 60
	mostLate  = 12
)

// wantBackoff checks that the pauses between the operator's tries in the namespace grow during a window. Meanwhile
// all tries must fail.
func wantBackoff(t *suite.T) {
	mark := t.Mark()
	t.Pause(window / 2)
	middle := t.Mark()
	t.Pause(window / 2)
	all, late := t.Writes(mark), t.Writes(middle)
	if len(all) > mostTries || len(late) > mostLate {
		t.Errorf("%d tries in %v, %d of them in the second half; with backoff at most %d and %d: %s",
			len(all), window, len(late), mostTries, mostLate, suite.Lines(all))
	}
}

// wantPort fails the check when Service and status do not have this node port.
func wantPort(t *suite.T, web *suite.Web, c *suite.Children, want int32) {
	if have := portOf(c.Service); have != want {
		t.Errorf("expected the node port %d; but it is %d", want, have)
	}
	if have := web.Status.NodePort; t.Reports() && (have == nil || *have != want) {
		t.Errorf("expected status.nodePort %d; but it is %s", want, suite.JSON(have))
	}
}
