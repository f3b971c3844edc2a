package hardening

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Guards keep the operator from writing what it should not write, or not yet. They are demanded by the checks
// of fault/21 (somebody else writes against the operator), fault/34 (an admission policy or a webhook changes
// what it applies) and by the request budget of behaviour/10.

// An ApplyGuard lets one apply of a child pass.
type ApplyGuard struct {
	memory *Remembered
	child  *myweb.Child
	drift  bool
	now    time.Time
}

// GuardApply returns an error when a child should not be applied, or not yet: a ConditionError or a RequeueAfter.
func (m *Memory) GuardApply(web *webv1.MyWeb, child *myweb.Child, differences []Difference, now time.Time) (
	*ApplyGuard, error) {
	g := &ApplyGuard{m.Of(web), child, isDrift(web, child), now}
	if g.memory.mutated[child.Kind] == mutation(child, differences) {
		return nil, mutated(child, differences) // another apply would end the same way
	}
	if wait := g.memory.driftDelay(child.Kind, now); g.drift && wait > 0 {
		return nil, RequeueAfter(wait)
	}
	return g, nil
}

// Applied notes an apply that succeeded. It returns an error when its answer is not what was applied.
func (g *ApplyGuard) Applied() error {
	if g.drift {
		g.memory.driftCorrected(g.child.Kind, g.now)
	}
	delete(g.memory.mutated, g.child.Kind)
	differences, err := Differences(g.child.Fields, g.child.Live)
	if err != nil || len(differences) == 0 {
		return err
	}
	g.memory.mutated[g.child.Kind] = mutation(g.child, differences)
	return mutated(g.child, differences)
}

// isDrift reports whether a write of a child corrects what somebody else did, and does not follow a changed
// MyWeb.
func isDrift(web *webv1.MyWeb, child *myweb.Child) bool {
	if child.Live.GetUID() == "" {
		return web.Status.ObservedGeneration == web.Generation // it existed before
	}
	return child.Live.GetAnnotations()[myweb.AnnotationApplied] == child.Meta.Annotations[myweb.AnnotationApplied]
}

// mutation identifies what became of an apply. While it stays the same, the next one would end the same way.
func mutation(child *myweb.Child, differences []Difference) string {
	return child.Meta.Annotations[myweb.AnnotationApplied] + Identify(differences)
}

// mutated is the error of a child that became something else than what was applied.
func mutated(child *myweb.Child, differences []Difference) error {
	return &myweb.ConditionError{Reason: webv1.ReasonChildMutated, Message: fmt.Sprintf("%s %s: an admission policy or a "+
		"webhook changes %s: exempt the object or the user of the operator from it, then delete the object, which will be "+
		"made again", child.Kind, *child.Meta.Name, Paths(differences))}
}

// A StatusGuard lets one write of a status pass, once Wait is over.
type StatusGuard struct {
	Wait time.Duration

	memory    *Remembered
	falsified bool
	now       time.Time
}

// GuardStatus is for the write of a MyWeb's status in the place of an old one that differs.
func (m *Memory) GuardStatus(web *webv1.MyWeb, old webv1.MyWebStatus, deployment *appsv1.Deployment,
	now time.Time) *StatusGuard {
	g := &StatusGuard{memory: m.Of(web), now: now}
	if g.falsified = g.memory.statusFalsified(old); g.falsified {
		g.Wait = g.memory.driftDelay("MyWeb", now)
	} else {
		g.Wait = statusWriteDelay(old, web.Status, deployment, myweb.RolloutOf(deployment), now)
	}
	return g
}

// Written notes a write that succeeded, and returns the events to record: none for a correction, because
// nothing happened to the MyWeb.
func (g *StatusGuard) Written(old, status webv1.MyWebStatus) []myweb.Event {
	g.memory.StatusWritten(status)
	if g.falsified {
		g.memory.driftCorrected("MyWeb", g.now)
		return nil
	}
	return myweb.EventsFor(old, status)
}
