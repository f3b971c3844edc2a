package conformance

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Reasons of Degraded, by contract.
const (
	resourceConflict         = "ResourceConflict"
	nodePortUnavailable      = "NodePortUnavailable"
	progressDeadlineExceeded = "ProgressDeadlineExceeded"
	replicaFailure           = "ReplicaFailure"
	deploymentPaused         = "DeploymentPaused"
)

// conflicts are the checks of an object that the operator does not own, for each kind of child.
func conflicts() (checks []suite.Check) {
	for _, k := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "behaviour/06-" + strings.ToLower(suite.KindOf[k]), Group: "6", Fast: k == suite.Deployments,
				Needs: status,
				Title: "a " + suite.KindOf[k] +
					" that the operator does not own is not touched; one warning reports it; the MyWeb is served when it is gone",
				Run: func(t *suite.T) { conflicted(t, k, false) }})
	}
	return checks
}

func conflicted(t *suite.T, k string, owned bool) {
	other := t.Create("other", suite.Sample())
	o := suite.Unmanaged(k, "web")
	if owned {
		o.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(other, myweb.MyWebs.GroupVersion().WithKind("MyWeb"))})
	}
	t.Make(k, o)
	t.Completed("other")
	t.AwaitQuiet(quiet) // an operator whose caches do not have the object yet is another experiment
	t.Create("web", suite.Sample())
	conflict := func(w *suite.Web) bool { return w.Degraded(resourceConflict) && !w.Status.Completed }
	t.Reacts("web", "is Degraded by "+resourceConflict, func(w *suite.Web) bool {
		isUntouched(t, k) // the check has certainly failed
		return conflict(w)
	})
	awaitWarning(t, "web")
	t.Edit(k, "web", `{"metadata":{"labels":{"touched":"once"}}}`) // the operator reconciles again
	before := settled(t, k, "web")
	t.Pause(700 * time.Millisecond)
	t.Await("web", "is still Degraded by "+resourceConflict, time.Second, conflict)
	if err := suite.Differ(settled(t, k, "web"), before); err != nil {
		t.Errorf("expected that the %s stays as it is; but it was changed: %v", suite.KindOf[k], err)
	}
	isUntouched(t, k)
	t.Remove(k, "web")
	web := t.Reacts("web", "is completed", (*suite.Web).Is)
	t.Recovered(web)
	t.Children(web)
	oneWarning(t, "web")
}

// isUntouched ends the check when the operator has changed the object that it does not own.
func isUntouched(t *suite.T, k string) {
	for _, e := range accepted(suite.About(t.Writes(0), k)) {
		if e.Name == "web" {
			t.Fatalf("expected no write of the %s that the operator does not own; but the operator wrote it: %s",
				suite.KindOf[k], e)
		}
	}
}

// settled returns an object without the fields that the control plane changes: for a Deployment the status, and the
// fields that change with it.
func settled(t *suite.T, k string, name string) (u *unstructured.Unstructured) {
	t.Eventually("the "+suite.KindOf[k]+" is settled", 0, func() (err error) {
		if u, err = t.Objects(k).Get(t.Context(), name, metav1.GetOptions{}); err != nil || k != suite.Deployments {
			return err
		}
		if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen < u.GetGeneration() {
			return fmt.Errorf("generation %d, observed %d", u.GetGeneration(), seen)
		}
		unstructured.RemoveNestedField(u.Object, "status")
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
		return nil
	})
	return u
}

func awaitWarning(t *suite.T, name string) {
	t.Reaction("there is a warning about MyWeb "+name, 0, func() error {
		if len(t.Warnings(name)) == 0 {
			return fmt.Errorf("its events are %q", t.Recorded(name))
		}
		return nil
	})
}

// oneWarning fails the check unless there is exactly one warning about the MyWeb. Events are recorded a moment after
// the change that they report.
func oneWarning(t *suite.T, name string) {
	awaitNoMoreEvents(t, quiet)
	t.Warned(name, 1, 1)
}

// hotLoop is more requests than an operator with exponential backoff sends in the time that calm watches.
const (
	hotLoop = 20
	calm    = 1500 * time.Millisecond
)

func isCalm(t *suite.T) {
	mark := t.Mark()
	t.Pause(calm)
	if requests := t.Requests(mark); len(requests) > hotLoop {
		t.Errorf("%d requests in %v, a loop with backoff sends less than %d:\n%s", len(requests), calm, hotLoop,
			suite.Lines(requests))
	}
}

func taken(w *suite.Web) bool { return w.Degraded(nodePortUnavailable) && !w.Status.Completed }

func portIsTaken(t *suite.T) {
	port := t.NodePort()
	t.Eventually("another Service has the port", 0, func() error { // a check that ended just now may still have it
		services := t.Fixture.Kube.CoreV1().Services(t.Namespace)
		_, err := services.Create(t.Context(), suite.PortHolder(port), metav1.CreateOptions{})
		return err
	})
	t.Create("web", asking(port))
	t.Await("web", "is Degraded by "+nodePortUnavailable, 0, taken)
	isCalm(t)
	t.Await("web", "is still Degraded by "+nodePortUnavailable, time.Second, taken)
	t.Remove(suite.Services, "holder")
	// the backoff may be long by now
	web := t.Await("web", "is completed after the port got free", 60*time.Second, (*suite.Web).Is)
	wantPort(t, web, t.Children(web), port)
	t.Recovered(web)
}

func asking(port int32) suite.WebSpec {
	spec := suite.Sample()
	spec.NodePortNumber = &port
	return spec
}

func portOfAnother(t *suite.T) {
	port, portFree := t.NodePort(), t.NodePort()
	first := t.Serve("first", asking(port))
	if _, err := t.TryCreate("second", asking(port)); err != nil { // a webhook refuses it at once
		for _, word := range []string{fmt.Sprint(port), "first"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("refused, and the message does not say that the port %d is that of MyWeb first: %v", port, err)
			}
		}
		unasked(t, func() { t.Create("second", asking(port)) })
	}
	t.Await("second", "is Degraded by "+nodePortUnavailable, 0, taken)
	now, err := t.Get("first")
	if t.Must(err, "read MyWeb first"); now.ResourceVersion != first.ResourceVersion {
		t.Errorf("another MyWeb asks for the port of the first, whose status becomes %v", now.Status)
	}
	wantPort(t, first, t.Children(first), port)
	t.Patch("second", fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, portFree))
	web := t.Completed("second")
	wantPort(t, web, t.Children(web), portFree)
	t.Recovered(web)
}

// unasked calls do while no webhook answers, as when the operator is down. Objects that a webhook would refuse are
// created then, or by two writes at the same time.
func unasked(t *suite.T, do func()) {
	t.Fixture.Webhooks.Close()
	defer t.Fixture.Webhooks.Open()
	do()
}

// portsSwapped swaps the ports of two MyWebs. Neither can be first.
func portsSwapped(t *suite.T) {
	a, b, third := t.NodePort(), t.NodePort(), t.NodePort()
	other, wants := map[string]string{"first": "second", "second": "first"}, map[string]int32{"first": b, "second": a}
	before := map[string]*suite.Children{
		"first": t.Children(t.Serve("first", asking(a))), "second": t.Children(t.Serve("second", asking(b)))}
	unasked(t, func() {
		for name, port := range wants {
			t.Patch(name, fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, port))
		}
	})
	for name := range wants {
		web := t.Await(name, "is Degraded", 0, taken)
		t.Says(web, other[name], fmt.Sprint(wants[name]))
	}
	isCalm(t)
	for name := range wants {
		oneWarning(t, name)
	}
	t.Patch("first", fmt.Sprintf(`{"spec":{"nodePortNumber":%d}}`, third))
	wants["first"] = third
	for name, port := range wants {
		web := t.Await(name, "is completed when the first has a third port", 60*time.Second, (*suite.Web).Is)
		after := t.Children(web)
		wantPort(t, web, after, port)
		t.SameChildren(before[name], after)
		t.Recovered(web)
	}
}
