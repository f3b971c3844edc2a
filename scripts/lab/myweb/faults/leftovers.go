package faults

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// leftoverChecks are the checks of objects that the operator does not own.
var leftoverChecks = []suite.Check{
	{ID: "fault/22-orphans", Fast: true, Run: orphans,
		Title: "all three orphans of an earlier MyWeb are named, with advice; they are not touched; it recovers when a " +
			"user follows the advice: one is handed over where that is offered, the others are deleted"},
	{ID: "fault/22-orphans-unseen", Alone: true, Run: orphansUnseen,
		Title: "an operator that sees the orphans, but not yet that the MyWeb is deleted, does not take them back"},
	{ID: "fault/22-held-by-finalizer", Run: heldByFinalizer,
		Title: "a child that a finalizer keeps from going is reported with the finalizer's name, once; it recovers"},
}

func orphans(t *suite.T) {
	t.Serve("web", suite.Sample())
	orphan(t, "web")
	for _, resource := range suite.Kinds {
		if owners := t.Read(resource, "web").GetOwnerReferences(); len(owners) > 0 {
			t.Fatalf("the %s was taken back: its owners are %v", suite.KindOf[resource], owners)
		}
	}
	before := map[string]any{}
	for _, resource := range suite.Kinds {
		before[resource] = untouched(t, resource)
	}
	mark := t.Mark()
	t.Create("web", suite.Sample())
	web := t.Reported("web", "ResourceConflict", patience, "ConfigMap", "Deployment", "Service", "elete")
	t.StaysQuiet(3 * time.Second)
	if now := t.Web("web"); now.Condition("Degraded").Message != web.Condition("Degraded").Message {
		t.Errorf("the message became another one: %q", now.Condition("Degraded").Message)
	}
	if warned := warningsSince(t, web); len(warned) != 1 {
		t.Errorf("%d Warnings, wanted 1: %q", len(warned), warned)
	}
	for _, resource := range suite.Kinds {
		if err := suite.Differ(untouched(t, resource), before[resource]); err != nil {
			t.Errorf("the %s was touched: %v", suite.KindOf[resource], err)
		}
	}
	var handedOver []string
	if m := handOver.FindStringSubmatch(web.Condition("Degraded").Message); m != nil {
		handedOver = []string{suite.ConfigMaps}
		t.Edit(suite.ConfigMaps, "web", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, m[1], m[2]))
	}
	removed := slices.DeleteFunc(slices.Clone(suite.Kinds), func(k string) bool { return slices.Contains(handedOver, k) })
	for _, resource := range removed {
		t.Remove(resource, "web")
	}
	converged(t, "web")
	t.Must(controlled(t, t.Web("web")), "read the owner references")
	wantMade(t, mark, 1, removed...)
	wantMade(t, mark, 0, handedOver...)
}

// handOver matches the advice in a message about how to hand an object over.
var handOver = regexp.MustCompile(`setting its annotation (\S+) to ([-0-9a-f]+)`)

// orphan deletes a MyWeb with --cascade=orphan, and returns when its children have lost their owner references.
func orphan(t *suite.T, name string) {
	err := t.Objects(suite.Resource).Delete(t.Context(), name,
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)})
	t.Must(err, "delete the MyWeb with --cascade=orphan")
	t.AwaitGone(suite.Resource, name, patience)
}

// orphansUnseen freezes the watch of the MyWebs while a MyWeb is deleted with --cascade=orphan. The operator sees
// only that the children have lost their owner reference. It must not restore that reference, because the garbage
// collector would then delete the children.
func orphansUnseen(t *suite.T) {
	renew(t)
	t.Serve("web", suite.Sample())
	t.AwaitQuiet(300 * time.Millisecond)
	mark := t.Mark()
	f := freeze(t, suite.Resource)
	t.AwaitFault(f, 1, time.Second)
	before := map[string]types.UID{}
	for _, resource := range suite.Kinds {
		before[resource] = t.Read(resource, "web").GetUID()
	}
	orphan(t, "web")
	t.Pause(2 * time.Second)
	f.Release()
	t.StaysQuiet(2 * time.Second)
	for _, resource := range suite.Kinds {
		orphan, err := t.Objects(resource).Get(t.Context(), "web", metav1.GetOptions{})
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

// warningsSince are the Warnings about this MyWeb, without those about an earlier MyWeb of its name.
func warningsSince(t *suite.T, web *suite.Web) (all []string) {
	for _, e := range t.Events(web.Name) {
		if e.Type == "Warning" && e.Regarding.UID == web.UID {
			all = append(all, e.Reason+": "+e.Note)
		}
	}
	return all
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
	web, _ := converged(t, "web")
	t.Recovered(web)
	wantMade(t, mark, 1, suite.ConfigMaps)
}
