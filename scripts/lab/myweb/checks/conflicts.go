package checks

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Reasons of Degraded, by contract.
const (
	resourceConflict         = "ResourceConflict"
	nodePortUnavailable      = "NodePortUnavailable"
	progressDeadlineExceeded = "ProgressDeadlineExceeded"
	replicaFailure           = "ReplicaFailure"
	deploymentPaused         = "DeploymentPaused"
	childRejected            = "ChildRejected"
)

// conflicts are the checks of an object that the operator does not own, for each kind of child.
func conflicts() []suite.Check {
	checks := []suite.Check{{ID: "behaviour/06-controlled-by-another",
		Title: "a ConfigMap that another MyWeb controls is not touched; one warning reports it; the MyWeb is served when " +
			"it is gone",
		Run: func(t *suite.T) { conflicted(t, suite.ConfigMaps, true, soonStill) }}}
	for _, k := range suite.Kinds {
		checks = append(checks, suite.Check{ID: "behaviour/06-" + short(k), Fast: k == suite.Deployments,
			Title: "a " + suite.KindOf[k] +
				" that the operator does not own is not touched; one warning reports it; the MyWeb is served when it is gone",
			Run: func(t *suite.T) { conflicted(t, k, false, soonStill) }})
	}
	return checks
}

func soonStill(t *suite.T) { t.Pause(700 * time.Millisecond) }

// pageChanged changes the page of a MyWeb that cannot be served: the report is about the new generation, and the
// operator tries with backoff.
func pageChanged(t *suite.T) {
	t.SetPage("web", "<h1>changed meanwhile</h1>")
	t.Reported("web", resourceConflict, patience)
	wantBackoff(t)
}

// conflicted creates an object that has a child's name, without an owner or controlled by another MyWeb. As long as it
// exists, also after meanwhile, it is reported and stays as it is.
func conflicted(t *suite.T, k string, owned bool, meanwhile func(*suite.T)) {
	other := t.Create("other", suite.Sample())
	o := suite.Unmanaged(k, "web")
	if owned {
		o.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(other, suite.WebKind)})
	}
	t.Make(k, o)
	t.Settled("other") // an operator whose caches do not have the object yet is another experiment
	t.Create("web", suite.Sample())
	t.Reacts("web", "is Degraded by "+resourceConflict, func(w *suite.Web) bool {
		isUntouched(t, k) // the check has certainly failed
		return w.Degraded(resourceConflict)
	})
	awaitWarning(t, "web")
	t.Edit(k, "web", `{"metadata":{"labels":{"touched":"once"}}}`) // the operator reconciles again
	before := settled(t, k, "web")
	meanwhile(t)
	t.Reported("web", resourceConflict, time.Second)
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
		if u, err = t.Objects(k).Get(t.Ctx, name, metav1.GetOptions{}); err != nil || k != suite.Deployments {
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
