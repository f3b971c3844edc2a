package operator

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// The user has permissions in two namespaces only: any other request would be refused, and logged as an error.
func TestItServesOnlyTheGivenNamespaces(t *testing.T) {
	w := newCluster(t)
	one, two, other := w.namespace(), w.namespace(), w.namespace()
	t.Setenv("WATCH_NAMESPACE", one+","+two)
	p := started(t, w.operator("scope", one, two))
	for _, namespace := range []string{one, two, other} {
		w.ask(namespace, "site")
	}
	w.served(one, "site")
	w.served(two, "site")
	p.Stop()
	if conditions := w.web(other, "site").Status.Conditions; len(conditions) > 0 {
		t.Errorf("it does not serve this namespace, and reports %v", conditions)
	}
}

func TestANodePortThatIsTakenWhereItDoesNotLook(t *testing.T) {
	w := newCluster(t)
	here, elsewhere, address := w.namespace(), w.namespace(), fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	p := started(t, w.operator("blind", here), "--namespaces="+here, "--metrics-bind-address="+address,
		"--metrics-secure=false")
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "other"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30031}}}}
	w.create(other)
	begin := time.Now()
	w.ask(here, "site", func(spec *webv1.MyWebSpec) { spec.NodePortNumber = new(int32(30031)) })
	w.Eventually(w.degraded(here, "site")).Should(gomega.Equal("True NodePortUnavailable"))
	retries := func() (n int, err error) {
		_, body := programtest.Get("http://"+address+"/metrics", "")
		for _, line := range series(body, "workqueue_retries_total") {
			n, err = strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
		}
		return n, err
	}
	w.Eventually(retries).Should(gomega.BeNumerically(">=", 8), "it is tried again")
	// The pauses before the first eight are 5, 10, 20 … 640 ms. An event of a child that the operator made itself may
	// bring one of them forward.
	w.Expect(time.Since(begin)).To(gomega.BeNumerically(">", 320*time.Millisecond), "eight tries")
	w.Expect(w.Delete(t.Context(), other)).To(gomega.Succeed())
	w.Expect(w.served(here, "site").Status.NodePort).To(gomega.Equal(int32(30031)))
	w.Eventually(func() []string { return w.events(here, "site") }).Should(gomega.Equal(
		[]string{"Warning NodePortUnavailable", "Normal Recovered", "Normal Complete"}))
	p.Stop() // it logged no error: status reported it
}
