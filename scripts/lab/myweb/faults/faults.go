// Package faults holds the fault catalogue: faults around a MyWeb operator, as experiments from outside. Each
// experiment checks the behaviour of a correct operator.
package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// poisoned is for mutants, which panic when they handle a MyWeb of that name.
func poisoned(t *suite.T) {
	t.Create("poisoned", suite.Sample())
	for n := range 3 {
		t.Create(fmt.Sprintf("web-%d", n), suite.Sample())
	}
	for n := range 3 {
		converged(t, fmt.Sprintf("web-%d", n))
	}
	wantAlive(t)
}

// status is the resource of the operator's status writes.
const status = suite.StatusResource

// short is a resource as part of an ID: "deployment".
func short(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return strings.TrimSuffix(name, "s")
}

// toWrite matches the writes to resources.
func toWrite(resources ...string) ledger.Match {
	return ledger.Match{Verbs: wire.Writes, Resources: resources}
}

// patience is the time limit for an expected event: a retry may be some seconds away, and the machine busy.
const patience = 45 * time.Second

// converged returns the MyWeb and its children when the MyWeb is served and the operator is in steady state. The
// children must match the spec. A status may be from before a child was recreated, so the pods count, too.
func converged(t *suite.T, name string) (*suite.Web, *suite.Children) {
	t.Served(name, "is completed", patience)
	t.Eventually("the pods of "+name+" run", patience, func() error {
		d, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return suite.RolledOut(d)
	})
	t.AwaitQuiet(500 * time.Millisecond)
	web := t.Served(name, "is completed", patience)
	c := t.Children(web)
	if err := c.Follow(web.Spec); err != nil {
		t.Errorf("completed, but %v", err)
	}
	return web, c
}

// notAllowed is the message of a policy of the lab.
const notAllowed = "the lab does not allow it"

// cut shortens a text for a message.
func cut(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// made counts the objects of a resource that the operator created since a mark.
func made(t *suite.T, after int, resource string) int { return madeOf(t, after, resource, "") }

// madeOf counts those with one name.
func madeOf(t *suite.T, after int, resource, name string) (n int) {
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
		if got := made(t, after, resource); got != n {
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

// hold keeps the first write to a resource until the rule is released.
func hold(t *suite.T, resources ...string) *proxy.Fault {
	return t.Rule(proxy.Rule{Match: toWrite(resources...), Times: 1, Do: proxy.Hold()})
}
