package operator

import (
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

func TestItServesOnlyTheGivenNamespaces(t *testing.T) {
	w := newCluster(t)
	one, two, other := w.namespace(), w.namespace(), w.namespace()
	const user = "scope"
	p := started(t, program, w.operator(user, one, two), "WATCH_NAMESPACE="+one+","+two)
	for _, namespace := range []string{one, two, other} {
		w.ask(namespace, "site")
	}
	w.served(one, "site")
	w.served(two, "site")
	for _, r := range w.settled(user) {
		if r.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("denied: %s", r)
		}
		if r.ObjectRef.Resource != "" && r.ObjectRef.Namespace == "" {
			t.Errorf("asked beyond its namespaces: %s", r)
		}
		if r.ObjectRef.Namespace == other {
			t.Errorf("it does not serve this namespace: %s", r)
		}
	}
	if conditions := w.web(other, "site").Status.Conditions; len(conditions) > 0 {
		t.Errorf("it does not serve this namespace, and reports %v", conditions)
	}
	for _, namespace := range []string{one, two, other} {
		w.remove(namespace, "site")
	}
	p.Stop()
}

func TestANodePortThatIsTakenWhereItDoesNotLook(t *testing.T) {
	w := newCluster(t)
	here, elsewhere := w.namespace(), w.namespace()
	const user = "blind"
	p := started(t, program, w.operator(user, here), "--namespaces="+here)
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "other"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30031}}}}
	w.create(other)
	w.ask(here, "site", func(spec *webv1.MyWebSpec) { spec.NodePortNumber = new(int32(30031)) })
	w.Eventually(w.degraded(here, "site")).Should(gomega.Equal("True NodePortUnavailable"))
	tries := func() []programtest.Request {
		return programtest.Filter(w.audit.Of(t, user), func(r programtest.Request) bool {
			return r.ObjectRef.Resource == "services" && r.Verb == "patch"
		})
	}
	w.Eventually(func() int { return len(tries()) }).Should(gomega.BeNumerically(">=", 8), "it is tried again")
	// The pauses before the first eight are 5, 10, 20 … 320 ms, 635 ms in all. An event of a child that the operator made
	// itself may bring one of them forward.
	all := tries()
	w.Expect(all[7].RequestReceivedTimestamp.Sub(all[0].RequestReceivedTimestamp)).
		To(gomega.BeNumerically(">", 320*time.Millisecond), "eight tries")
	w.Expect(w.Delete(t.Context(), other)).To(gomega.Succeed())
	w.Expect(w.served(here, "site").Status.NodePort).To(gomega.Equal(int32(30031)))
	w.settled(user)
	w.Eventually(func() []string { return w.events(here, "site") }).Should(gomega.Equal(
		[]string{"Warning NodePortUnavailable", "Normal Recovered", "Normal Complete"}))
	w.remove(here, "site")
	p.Stop() // it logged no error: status reported it
}
