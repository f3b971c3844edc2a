package controller

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// atOnce is how long it may take to notice what a watch tells.
const atOnce = 2 * time.Second

// message is what a condition of a MyWeb says.
func (b *bench) message(name, kind string) string {
	b.Helper()
	return meta.FindStatusCondition(b.web(name).Status.Conditions, kind).Message
}

// blocked waits until a MyWeb is degraded for a reason, and shows that nothing more is sent then.
func (b *bench) blocked(name, reason string) {
	b.Helper()
	b.Eventually(b.condition(name, webv1.ConditionDegraded)).Should(Equal("True " + reason))
	sent := b.total()
	b.Consistently(b.total).Should(Equal(sent), "requests were sent although only the obstacle could change something")
}

// healed shows that a MyWeb recovers at once.
func (b *bench) healed(name string) {
	b.Helper()
	b.Eventually(b.condition(name, webv1.ConditionDegraded), atOnce).Should(Equal("False AsExpected"))
	b.complete(name)
}

func TestAnObjectOfSomebodyElseIsNeverChanged(t *testing.T) {
	t.Parallel()
	for kind := range resources {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			version := b.put(foreign(kind, "site")).GetResourceVersion()
			b.start(Options{})
			b.create("site")
			b.blocked("site", webv1.ReasonResourceConflict)
			b.sentExactly(map[string]int{"PUT mywebs/status": 1})
			if got := b.message("site", webv1.ConditionDegraded); !strings.Contains(got, kind+" site") {
				t.Errorf("the message does not name the object: %s", got)
			}
			if b.child(kind, "site").GetResourceVersion() != version {
				t.Error("the foreign object was changed")
			}
			b.remove(kind, "site")
			b.healed("site")
			b.Eventually(b.events).Should(ConsistOf("Warning ResourceConflict", "Normal Recovered", "Normal Complete"))
		})
	}
}

func TestAnObstacleInPlaceOfAChildDoesNotHideWhatIsServed(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == "PATCH configmaps" { // somebody is faster
			b.put(foreign("ConfigMap", "site"))
			b.between(nil)
		}
		return pass()
	})
	b.remove("ConfigMap", "site")
	b.blocked("site", webv1.ReasonResourceConflict)
	if s := b.web("site").Status; s.ReadyReplicas != 1 || s.NodePort == 0 || s.Completed {
		t.Errorf("the pods serve, the page's ConfigMap is foreign; status says %+v", s)
	}
	if got := b.condition("site", webv1.ConditionAvailable)(); got != "True Serving" {
		t.Errorf("Available is %s", got)
	}
}

func TestAnObstacleBetweenLookAndWriteIsNotChanged(t *testing.T) {
	t.Parallel()
	for kind, resource := range resources {
		for name, exists := range map[string]bool{"the child was missing": false, "the child was swapped": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.start(Options{})
				if exists {
					b.create("site")
					b.complete("site")
				}
				var once sync.Once
				var version string
				b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
					if r.kind != "PATCH "+resource {
						return pass()
					}
					once.Do(func() {
						if exists {
							b.remove(kind, "site")
						}
						version = b.put(foreign(kind, "site")).GetResourceVersion()
					})
					response, err := pass()
					if err == nil && response.StatusCode < 300 {
						b.Errorf("the API server accepted the write over a foreign %s", kind)
					}
					return response, err
				})
				if exists {
					b.edit("site", func(s *webv1.MyWebSpec) {
						s.Image, s.PageContentHTML, s.NodePortNumber = "new", new("new"), new(freePort())
					})
				} else {
					b.create("site")
				}
				b.blocked("site", webv1.ReasonResourceConflict)
				if now := b.child(kind, "site"); now.GetResourceVersion() != version || len(now.GetOwnerReferences()) > 0 {
					t.Error("the foreign object was changed")
				}
			})
		}
	}
}

func TestAnObstacleBeforeASpecIsReplacedIsNotChanged(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	var version string
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == "PATCH services" && r.Header.Get("Content-Type") == "application/merge-patch+json" {
			b.between(nil)
			b.remove("Service", "site")
			version = b.put(foreign("Service", "site")).GetResourceVersion()
		}
		return pass()
	})
	b.patch("Service", "site", replace("/spec/ports/0/port", "81"))
	b.blocked("site", webv1.ReasonResourceConflict)
	if got := b.child("Service", "site").GetResourceVersion(); got != version || version == "" {
		t.Errorf("the foreign Service had version %q, now %q", version, got)
	}
}

// holding returns a Service that holds a node port.
func holding(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
}

func TestANodePortThatAnotherServiceHolds(t *testing.T) {
	t.Parallel()
	port := freePort()
	elsewhere := newBench(t) // node ports are one for the whole cluster
	elsewhere.put(holding("other", port))
	b := newBench(t)
	b.start(Options{})
	b.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	b.blocked("site", webv1.ReasonNodePortUnavailable)
	b.sentExactly(map[string]int{"PATCH configmaps": 1, "PATCH deployments": 1, "PUT mywebs/status": 1})
	want := fmt.Sprintf("node port %d is taken by Service %s/other", port, elsewhere.namespace)
	if got := b.message("site", webv1.ConditionDegraded); got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	b.Consistently(b.total, 3*time.Second).Should(Equal(3))
	elsewhere.remove("Service", "other")
	b.healed("site")
	if got := b.web("site").Status.NodePort; got != port {
		t.Errorf("status.nodePort is %d, want %d", got, port)
	}
	b.Eventually(b.events).Should(ConsistOf("Warning NodePortUnavailable", "Normal Recovered", "Normal Complete"))
}

func TestANodePortThatIsGivenBackByAChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	port := freePort()
	b.put(holding("other", port))
	b.start(Options{})
	b.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	b.blocked("site", webv1.ReasonNodePortUnavailable)
	b.patch("Service", "other", replace("/spec/ports/0/nodePort", fmt.Sprint(freePort())))
	b.healed("site")
}

func TestATakenNodePortThatIsNotAskedForAnyMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	port := freePort()
	b.put(holding("other", port))
	b.start(Options{})
	b.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	b.blocked("site", webv1.ReasonNodePortUnavailable)
	b.edit("site", func(s *webv1.MyWebSpec) { s.NodePortNumber = nil })
	b.healed("site")
}

func TestAChangeToATakenNodePortKeepsServing(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	served, port := b.web("site").Status.NodePort, freePort()
	b.put(holding("other", port))
	b.edit("site", func(s *webv1.MyWebSpec) { s.NodePortNumber = &port })
	b.blocked("site", webv1.ReasonNodePortUnavailable)
	if s := b.web("site").Status; s.NodePort != served || s.ReadyReplicas != 1 || s.Completed {
		t.Errorf("the old port %d still serves, status says %+v", served, s)
	}
	b.remove("Service", "other")
	b.healed("site")
}

func TestANodePortThatTwoMyWebsWant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	port := freePort()
	wanting := func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port }
	b.start(Options{})
	b.create("first", wanting)
	b.complete("first")
	b.create("second", wanting)
	b.blocked("second", webv1.ReasonNodePortUnavailable)
	if got := b.message("second", webv1.ConditionDegraded); !strings.HasSuffix(got, b.namespace+"/first") {
		t.Errorf("the message is %q", got)
	}
	if !b.completed("first")() {
		t.Error("the one that holds the port is disturbed")
	}
	b.edit("first", func(s *webv1.MyWebSpec) { s.NodePortNumber = new(freePort()) })
	b.healed("second")
	b.complete("first")
}

func TestANodePortWhoseHolderTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	port := freePort()
	b.start(Options{})
	b.freeze("services")
	b.put(holding("other", port))
	b.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	b.Eventually(b.condition("site", webv1.ConditionDegraded)).Should(Equal("True " + webv1.ReasonNodePortUnavailable))
	b.Eventually(func() int { return b.requests()["PATCH services"] }).Should(BeNumerically(">", 3)) // no watch tells of the end
	b.thaw("services")
	b.Eventually(func() string { return b.message("site", webv1.ConditionDegraded) }).Should(ContainSubstring(b.namespace + "/other"))
	b.blocked("site", webv1.ReasonNodePortUnavailable)
	b.remove("Service", "other")
	b.healed("site")
	if got := b.warnings(); len(got) != 1 {
		t.Errorf("the warnings are %v", got)
	}
}

func TestWhatAPredecessorLeftIsWaitedFor(t *testing.T) {
	t.Parallel()
	for kind := range resources {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			left := foreign(kind, "site")
			left.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: webv1.SchemeGroupVersion.String(), Kind: "MyWeb",
				Name: "site", UID: "gone", Controller: new(true)}})
			version := b.put(left).GetResourceVersion()
			b.start(Options{})
			b.create("site")
			b.Eventually(b.condition("site", webv1.ConditionProgressing)).Should(Equal("True " + webv1.ReasonWaitingForDeletion))
			if got := b.condition("site", webv1.ConditionDegraded)(); got != "False AsExpected" {
				t.Errorf("Degraded is %s", got)
			}
			b.Consistently(b.requests).Should(Equal(map[string]int{"PUT mywebs/status": 1}))
			if b.child(kind, "site").GetResourceVersion() != version {
				t.Error("what the predecessor left was changed")
			}
			b.remove(kind, "site") // as the garbage collector would
			b.Eventually(b.exists("Service", "site"), atOnce).Should(BeTrue())
			b.complete("site")
			b.Eventually(b.events).Should(Equal([]string{"Normal Complete"}))
		})
	}
}

func TestAChildThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.patch("ConfigMap", "site", `[{"op":"add","path":"/metadata/finalizers","value":["example.com/keep"]}]`)
	b.remove("ConfigMap", "site")
	b.Eventually(b.condition("site", webv1.ConditionProgressing)).Should(Equal("True " + webv1.ReasonWaitingForDeletion))
	sent := b.total()
	b.Consistently(b.total).Should(Equal(sent))
	b.patch("ConfigMap", "site", removal("/metadata/finalizers"))
	b.Eventually(b.completed("site"), atOnce).Should(BeTrue())
	if got := b.child("ConfigMap", "site"); got.GetDeletionTimestamp() != nil {
		t.Error("the ConfigMap is still being deleted")
	}
	if got := b.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

func TestAProgressDeadlineThatPassed(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.edit("site", func(s *webv1.MyWebSpec) { s.Image = "nginx:none" })
	b.Eventually(b.condition("site", webv1.ConditionProgressing)).Should(Equal("True " + webv1.ReasonRollingOut))
	b.rollout("site", func(d *appsv1.Deployment) { // the old pod serves, the new one never will
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ProgressDeadlineExceeded", Message: "timed out progressing", LastUpdateTime: metav1.Now()}}}
	})
	b.blocked("site", webv1.ReasonProgressDeadlineExceeded)
	if got := b.condition("site", webv1.ConditionAvailable)(); got != "True Serving" {
		t.Errorf("Available is %s", got)
	}
	b.edit("site", func(s *webv1.MyWebSpec) { s.Image = "nginx" })
	b.healed("site")
	b.Eventually(b.events).Should(ConsistOf("Normal Complete", "Warning ProgressDeadlineExceeded", "Normal Recovered", "Normal Complete"))
}

// forbid makes a quota that allows no node port in the namespace, and plays its controller.
func (b *bench) forbid() {
	b.Helper()
	none := corev1.ResourceList{corev1.ResourceServicesNodePorts: resource.MustParse("0")}
	quotas := b.kube.CoreV1().ResourceQuotas(b.namespace)
	quota, err := quotas.Create(b.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	b.must(err)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	_, err = quotas.UpdateStatus(b.Context(), quota, metav1.UpdateOptions{})
	b.must(err)
	b.Eventually(func() error { // the admission of quotas has a cache of its own
		_, err := b.kube.CoreV1().Services(b.namespace).Create(b.Context(), holding("probe", 0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).Should(MatchError(ContainSubstring("exceeded quota")))
}

func TestAChildThatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.forbid()
	b.start(Options{})
	began := time.Now()
	b.create("site")
	b.Eventually(b.condition("site", webv1.ConditionDegraded)).Should(Equal("True " + webv1.ReasonChildRejected))
	if got := b.message("site", webv1.ConditionDegraded); !strings.Contains(got, "Service") || !strings.Contains(got, "exceeded quota") {
		t.Errorf("the message is %q", got)
	}
	tries := func() int { return b.requests()["PATCH services"] }
	b.Consistently(tries, 3*time.Second).Should(BeNumerically("<=", 12)) // 5 ms, doubled each time
	if n := tries(); n < 5 {
		t.Errorf("%d tries in %s: nobody tells when it is allowed", n, time.Since(began))
	}
	got := b.requests()
	delete(got, "PATCH services")
	if want := map[string]int{"PATCH configmaps": 1, "PATCH deployments": 1, "PUT mywebs/status": 1}; !maps.Equal(want, got) {
		t.Errorf("the requests are %v, want %v", got, want)
	}
	b.must(b.kube.CoreV1().ResourceQuotas(b.namespace).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	b.Eventually(b.condition("site", webv1.ConditionDegraded)).Should(Equal("False AsExpected"))
	b.complete("site")
	b.Eventually(b.events).Should(ConsistOf("Warning ChildRejected", "Normal Recovered", "Normal Complete"))
}

func TestANamespaceThatEndsIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.must(b.kube.CoreV1().Namespaces().Delete(t.Context(), b.namespace, metav1.DeleteOptions{}))
	b.Eventually(func() error {
		_, err := b.kube.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), foreign("ConfigMap", "probe").(*corev1.ConfigMap),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).Should(MatchError(ContainSubstring("being terminated")))
	b.forget()
	b.remove("ConfigMap", "site") // as the namespace controller would
	b.Eventually(b.total).Should(Equal(1))
	b.Consistently(b.requests, 2*time.Second).Should(Equal(map[string]int{"PATCH configmaps": 1}))
	if got := b.condition("site", webv1.ConditionDegraded)(); got != "False AsExpected" {
		t.Errorf("Degraded is %s", got)
	}
	if got := b.events(); slices.Contains(got, "Warning ChildRejected") {
		t.Errorf("the events are %v", got)
	}
}
