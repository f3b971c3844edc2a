package conformance

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	for _, k := range kinds {
		checks = append(checks,
			suite.Check{ID: "behaviour/06-" + strings.ToLower(k.name), Group: "6", Fast: k.name == "Deployment", Needs: status,
				Title: "a " + k.name +
					" that the operator does not own is not touched; one warning reports it; the MyWeb is served when it is gone",
				Run: func(t *suite.T) { conflicted(t, k, false) }})
	}
	return checks
}

// conflicting is an object of another owner that has the name of a child. It has no field of a child.
func (k kind) conflicting(name string) metav1.Object {
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "legacy"}}
	switch k.name {
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"index.html": "mine", "other": "key"}}
	case "Service":
		return &corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 8080}}}}
	}
	return &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "legacy", Image: "example.com/legacy"}}}}}}
}

func conflicted(t *suite.T, k kind, owned bool) {
	other := t.Create("other", suite.Sample())
	o := k.conflicting("web")
	if owned {
		o.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(other, myweb.MyWebs.GroupVersion().WithKind("MyWeb"))})
	}
	k.create(t, o)
	t.Completed("other")
	t.AwaitQuiet(quiet) // an operator whose caches do not have the object yet is another experiment
	t.Create("web", suite.Sample())
	conflict := func(w *suite.Web) bool { return w.Degraded(resourceConflict) && !w.Status.Completed }
	t.Reacts("web", "is Degraded by "+resourceConflict, func(w *suite.Web) bool {
		isUntouched(t, k) // the check has certainly failed
		return conflict(w)
	})
	awaitWarning(t, "web")
	merge(t, k.of(t), "web", `{"metadata":{"labels":{"touched":"once"}}}`) // the operator reconciles again
	before := settled(t, k, "web")
	t.Pause(700 * time.Millisecond)
	t.Await("web", "is still Degraded by "+resourceConflict, time.Second, conflict)
	if err := suite.Differ(settled(t, k, "web"), before); err != nil {
		t.Errorf("expected that the %s stays as it is; but it was changed: %v", k.name, err)
	}
	isUntouched(t, k)
	k.delete(t, "web")
	web := t.Reacts("web", "is completed", (*suite.Web).Is)
	if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
		t.Errorf("expected Degraded False after the conflict; but it is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
	t.Children(web)
	oneWarning(t, "web")
}

// isUntouched ends the check when the operator has changed the object that it does not own.
func isUntouched(t *suite.T, k kind) {
	for _, e := range accepted(about(t.Writes(0), k.ledger)) {
		if e.Name == "web" {
			t.Fatalf("expected no write of the %s that the operator does not own; but the operator wrote it: %s", k.name, e)
		}
	}
}

// settled returns an object without the fields that the control plane changes: for a Deployment the status, and the
// fields that change with it.
func settled(t *suite.T, k kind, name string) (u *unstructured.Unstructured) {
	t.Eventually("the "+k.name+" is settled", 0, func() (err error) {
		if u, err = k.of(t).Get(t.Context(), name, readNow); err != nil || k.name != "Deployment" {
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
		if len(warnings(t, name)) == 0 {
			return fmt.Errorf("its events are %q", recorded(t, name))
		}
		return nil
	})
}

// oneWarning fails the check unless there is exactly one warning about the MyWeb. Events are recorded a moment after
// the change that they report.
func oneWarning(t *suite.T, name string) {
	awaitNoMoreEvents(t, quiet)
	if all := warnings(t, name); len(all) != 1 {
		t.Errorf("expected 1 warning; but there are %d: %q", len(all), all)
	}
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

func holder(port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "holder"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
}

func taken(w *suite.Web) bool { return w.Degraded(nodePortUnavailable) && !w.Status.Completed }

func portIsTaken(t *suite.T) {
	service, port := kindNamed("Service"), t.NodePort()
	t.Eventually("another Service has the port", 0, func() error { // a check that ended just now may still have it
		_, err := t.Fixture.Kube.CoreV1().Services(t.Namespace).Create(t.Context(), holder(port), metav1.CreateOptions{})
		return err
	})
	t.Create("web", asking(port))
	t.Await("web", "is Degraded by "+nodePortUnavailable, 0, taken)
	isCalm(t)
	t.Await("web", "is still Degraded by "+nodePortUnavailable, time.Second, taken)
	service.delete(t, "holder")
	// the backoff may be long by now
	web := t.Await("web", "is completed after the port got free", 60*time.Second, (*suite.Web).Is)
	wantPort(t, web, t.Children(web), port)
	if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
		t.Errorf("Degraded is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
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
	if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
		t.Errorf("Degraded is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
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
		message := web.Condition("Degraded").Message
		for _, word := range []string{other[name], fmt.Sprint(wants[name])} {
			if !strings.Contains(message, word) {
				t.Errorf("the message of %s does not name %s: %q", name, word, message)
			}
		}
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
		samePlaces(t, before[name], after)
		if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
			t.Errorf("Degraded is %s: %s: %s", c.Status, c.Reason, c.Message)
		}
	}
}
