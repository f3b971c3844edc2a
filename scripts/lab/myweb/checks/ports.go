package checks

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// portHolder is a Service of another owner with a node port.
func portHolder(port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "holder"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
}

func portIsTaken(t *suite.T) {
	port := t.NodePort()
	t.Make(suite.Services, portHolder(port))
	t.Create("web", asking(port))
	t.Reported("web", nodePortUnavailable, 0)
	wantBackoff(t)
	t.Reported("web", nodePortUnavailable, time.Second)
	t.Remove(suite.Services, "holder")
	// the backoff may be long by now
	web := t.Await("web", "is completed after the port got free", 60*time.Second, (*suite.Web).Is)
	wantPort(t, web, t.Children(web), port)
	t.Recovered(web)
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
	t.Reported("second", nodePortUnavailable, 0)
	if now := t.Web("first"); now.ResourceVersion != first.ResourceVersion {
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
		t.Reported(name, nodePortUnavailable, 0, other[name], fmt.Sprint(wants[name]))
	}
	wantBackoff(t)
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
