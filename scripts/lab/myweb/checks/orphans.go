package checks

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// orphanChecks are the checks of objects that the operator does not own.
var orphanChecks = []suite.Check{
	{ID: "fault/22-orphans", Fast: true, Run: orphans,
		Title: "all three orphans of an earlier MyWeb are named, with advice; they are not touched; it recovers when a " +
			"user follows the advice: one is handed over where that is offered, the others are deleted"},
	{ID: "fault/22-orphans-unseen", Alone: true, Run: orphansUnseen,
		Title: "an operator that sees the orphans, but not yet that the MyWeb is deleted, does not take them back"},
	{ID: "fault/22-held-by-finalizer", Fast: true, Run: heldByFinalizer,
		Title: "a child that a finalizer keeps from going is reported with the finalizer's name, once; it recovers"},
}

// faultsOfKinds are the checks of objects with the name of a child, for each kind of child.
func faultsOfKinds() (checks []suite.Check) {
	for _, k := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "fault/17-" + short(k) + "-deleted", Fast: k == suite.ConfigMaps,
				Run:   func(t *suite.T) { deletedAndQuiet(t, k) },
				Title: "a " + suite.KindOf[k] + " that was deleted comes back once"},
			suite.Check{ID: "fault/22-" + short(k) + "-taken", Fast: k == suite.Services,
				Title: "a " + suite.KindOf[k] +
					" that has the name but another owner is not touched; it is reported, and recovers",
				Run: func(t *suite.T) {
					conflicted(t, k, false, pageChanged)
					converged(t, "web")
					wantMade(t, 0, 2, suite.Kinds...) // also those of the other MyWeb
				}},
			suite.Check{ID: "fault/27-" + short(k) + "-create-held", Fast: k == suite.ConfigMaps,
				Title: "a MyWeb deleted and recreated while its " + suite.KindOf[k] + " is being created gets new children",
				Run:   func(t *suite.T) { createHeld(t, k) }})
	}
	return checks
}

func orphans(t *suite.T) {
	t.Serve("web", suite.Sample())
	orphan(t, "web")
	before := map[string]any{}
	for _, k := range suite.Kinds {
		o := settled(t, k, "web")
		if owners := o.GetOwnerReferences(); len(owners) > 0 {
			t.Fatalf("the %s was taken back: its owners are %v", suite.KindOf[k], owners)
		}
		before[k] = o
	}
	mark := t.Mark()
	t.Create("web", suite.Sample())
	web := t.Reported("web", resourceConflict, patience, "ConfigMap", "Deployment", "Service", "elete")
	t.StaysQuiet(3 * time.Second)
	message := web.Condition("Degraded").Message
	if now := t.Web("web").Condition("Degraded").Message; now != message {
		t.Errorf("the message became another one: %q", now)
	}
	t.Warned("web", 1, 1)
	for _, k := range suite.Kinds {
		if err := suite.Differ(settled(t, k, "web"), before[k]); err != nil {
			t.Errorf("the %s was touched: %v", suite.KindOf[k], err)
		}
	}
	removed := suite.Kinds
	if m := handOver.FindStringSubmatch(message); m != nil {
		t.Edit(suite.ConfigMaps, "web", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, m[1], m[2]))
		removed = []string{suite.Deployments, suite.Services}
	}
	for _, k := range removed {
		t.Remove(k, "web")
	}
	converged(t, "web")
	t.Must(t.Controlled(t.Web("web")), "read the owner references")
	wantMade(t, mark, 1, removed...)
	if len(removed) < len(suite.Kinds) {
		wantMade(t, mark, 0, suite.ConfigMaps)
	}
}

// handOver matches the advice in a message about how to hand an object over.
var handOver = regexp.MustCompile(`setting its annotation (\S+) to ([-0-9a-f]+)`)

// orphan deletes a MyWeb with --cascade=orphan, and returns when its children have lost their owner references.
func orphan(t *suite.T, name string) {
	t.Remove(suite.Resource, name, metav1.DeletePropagationOrphan)
	t.AwaitGone(suite.Resource, name, patience)
}

// orphansUnseen freezes the watch of the MyWebs while a MyWeb is deleted with --cascade=orphan. The operator sees
// only that the children have lost their owner reference. It must not restore that reference, because the garbage
// collector would then delete the children.
func orphansUnseen(t *suite.T) {
	renew(t)
	t.Serve("web", suite.Sample())
	mark := t.Mark()
	f := freeze(t, suite.Resource)
	before := map[string]types.UID{}
	for _, resource := range suite.Kinds {
		before[resource] = t.Read(resource, "web").GetUID()
	}
	orphan(t, "web")
	t.Pause(2 * time.Second)
	f.Release()
	t.StaysQuiet(2 * time.Second)
	for _, resource := range suite.Kinds {
		orphan, err := t.Objects(resource).Get(t.Ctx, "web", metav1.GetOptions{})
		if err != nil {
			t.Errorf("the %s was taken back, and deleted for that: %v", suite.KindOf[resource], err)
		} else if owners := orphan.GetOwnerReferences(); orphan.GetUID() != before[resource] || len(owners) > 0 {
			t.Errorf("the %s was taken back: it has the owners %v", suite.KindOf[resource], owners)
		}
	}
	if changes := t.Changes(mark); len(changes) > 0 {
		t.Errorf("%d changes by an operator that does not see the deletion: %s", len(changes), suite.Lines(changes))
	}
	wantBackoff(t)
	wantAlive(t)
}

// holding is a finalizer that no controller handles.
const holding = "lab.example.com/held"

func heldByFinalizer(t *suite.T) {
	t.Serve("web", suite.Sample())
	mark := t.Mark()
	t.Edit(suite.ConfigMaps, "web", `{"metadata":{"finalizers":["`+holding+`"]}}`)
	t.Remove(suite.ConfigMaps, "web")
	t.Reported("web", "WaitingForDeletion", patience, "ConfigMap", holding)
	t.StaysQuiet(3 * time.Second)
	warned := t.Warnings("web")
	if len(warned) != 1 || !strings.Contains(warned[0], holding) {
		t.Errorf("%d Warnings, wanted one Warning with the name of the finalizer: %q", len(warned), warned)
	}
	t.Edit(suite.ConfigMaps, "web", `{"metadata":{"finalizers":null}}`)
	recovers(t)
	wantMade(t, mark, 1, suite.ConfigMaps)
}

// olderChild creates a Deployment as an older version of the operator might have: controlled by the MyWeb, with an
// immutable selector that differs.
func olderChild(t *suite.T) {
	held := hold(t, suite.Deployments)
	web := t.Create("web", suite.Sample())
	t.AwaitFault(held, 1, patience)
	child := suite.Unmanaged(suite.Deployments, "web")
	child.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(web, suite.WebKind)})
	old := t.Make(suite.Deployments, child)
	held.Release()
	web = t.Await("web", "is Degraded, or completed with a new Deployment", patience, func(w *suite.Web) bool {
		return w.Is() || w.Condition("Degraded").Status == metav1.ConditionTrue
	})
	if web.Is() {
		if _, c := converged(t, "web"); c.Deployment.UID == old.GetUID() {
			t.Errorf("completed, but the Deployment still selects %v", c.Deployment.Spec.Selector.MatchLabels)
		}
		return
	}
	wantBackoff(t)
	if web = t.Web("web"); web.Status.Completed {
		t.Errorf("completed is true, but the Deployment cannot be what it should")
	}
	if now := t.Read(suite.Deployments, "web"); now.GetUID() != old.GetUID() {
		t.Errorf("reported as a conflict, and replaced all the same")
	}
	t.Remove(suite.Deployments, "web")
	converged(t, "web")
}

// createHeld holds the first write of a child, and meanwhile deletes and recreates the MyWeb.
func createHeld(t *suite.T, resource string) {
	held := hold(t, resource)
	t.Create("web", suite.Sample())
	t.AwaitFault(held, 1, patience)
	t.Remove(suite.Resource, "web")
	t.AwaitGone(suite.Resource, "web", 0)
	web := t.Create("web", page("<h1>Another</h1>"))
	held.Release()
	t.Eventually("the children are those of the new MyWeb", patience, func() error { return t.Controlled(web) })
	converged(t, "web")
	t.StaysQuiet(time.Second)
}
