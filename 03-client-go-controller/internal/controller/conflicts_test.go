package controller

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/owned"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/test/mywebtest"
)

// atOnce limits how long the controller may take to handle a watch event. Tests use it where nothing else would enqueue
// the MyWeb, so a test with a missing watch fails after this time.
const atOnce = 15 * time.Second

// message returns the message of a condition of a MyWeb.
func (f *fixture) message(name, kind string) string {
	f.Helper()
	return meta.FindStatusCondition(f.web(name).Status.Conditions, kind).Message
}

// blocked waits until a MyWeb is degraded for a reason, and checks that the controller then sends nothing more.
func (f *fixture) blocked(name, reason string) {
	f.Helper()
	f.Eventually(f.condition(name, owned.Degraded)).Should(Equal("True " + reason))
	sent := f.total()
	f.Consistently(f.total).Should(Equal(sent),
		"requests were sent although only the end of the conflict could change something")
}

// recovered checks that a MyWeb recovers at once.
func (f *fixture) recovered(name string) {
	f.Helper()
	f.Eventually(f.condition(name, owned.Degraded), atOnce).Should(Equal("False AsExpected"))
	f.complete(name)
}

func TestAConflictBetweenReadAndWriteIsNotChanged(t *testing.T) {
	t.Parallel()
	for kind, resource := range resources {
		for name, exists := range map[string]bool{"the child was missing": false, "the child was swapped": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.start()
				if exists {
					f.create("site")
					f.complete("site")
				}
				var once sync.Once
				var version string
				f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
					if r.kind != "PATCH "+resource {
						return pass()
					}
					once.Do(func() {
						if exists {
							f.remove(kind, "site")
						}
						version = f.put(mywebtest.Unmanaged(kind, "", "site")).GetResourceVersion()
					})
					response, err := pass()
					if err == nil && response.StatusCode < 300 {
						f.Errorf("the API server accepted the write over an unmanaged %s", kind)
					}
					return response, err
				})
				if exists {
					f.edit("site", func(s *webv1.MyWebSpec) {
						s.Image, s.PageContentHTML, s.NodePortNumber = "new", new("new"), new(freePort())
					})
				} else {
					f.create("site")
				}
				f.blocked("site", owned.ReasonResourceConflict)
				if now := f.child(kind, "site"); now.GetResourceVersion() != version || len(now.GetOwnerReferences()) > 0 {
					t.Error("the unmanaged object was changed")
				}
			})
		}
	}
}

// holding returns a Service that holds a node port.
func holding(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
}

func TestANodePortWhoseHolderTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	port := freePort()
	f.start()
	f.freeze("services")
	f.put(holding("other", port))
	f.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	f.Eventually(f.condition("site", owned.Degraded)).Should(Equal("True " + webv1.ReasonNodePortUnavailable))
	// no watch reports that the port is free
	f.Eventually(func() int { return f.requests()["PATCH services"] }).Should(BeNumerically(">", 3))
	f.thaw("services")
	f.Eventually(func() string {
		return f.message("site", owned.Degraded)
	}).Should(ContainSubstring(f.namespace + "/other"))
	f.blocked("site", webv1.ReasonNodePortUnavailable)
	f.remove("Service", "other")
	f.recovered("site")
	if got := f.warnings(); len(got) != 1 {
		t.Errorf("the warnings are %v", got)
	}
}
