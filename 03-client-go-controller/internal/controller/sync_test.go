package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// These tests run the whole controller, with its caches, against a real API server. They judge what lies
// there in the end, and the requests that it took.

// fewest is what one MyWeb costs from creation to completed.
var fewest = map[string]int{"PATCH configmaps": 1, "PATCH deployments": 1, "PATCH services": 1, "PUT mywebs/status": 2}

func (b *bench) sentExactly(want map[string]int) {
	b.Helper()
	if diff := cmp.Diff(want, b.requests()); diff != "" {
		b.Errorf("other requests than expected:\n%s", diff)
	}
}

func TestFromNothingToCompleted(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.Consistently(b.requests).Should(Equal(fewest))
	web := b.web("site")
	if s := web.Status; s.ReadyReplicas != 1 || s.NodePort < 30000 || s.ObservedGeneration != web.Generation {
		t.Errorf("all is ready, status says %+v", s)
	}
	for kind := range resources {
		if child := b.child(kind, "site"); !metav1.IsControlledBy(child, web) {
			t.Errorf("%s is not controlled by the MyWeb", kind)
		}
	}
	if got := b.child("ConfigMap", "site").(*corev1.ConfigMap).Data; got[pageFile] != "<h1>Hello</h1>" || len(got) != 1 {
		t.Errorf("the ConfigMap holds %q", got)
	}
	if got := b.events(); !slices.Equal(got, []string{"Normal Complete"}) {
		t.Errorf("the events are %v", got)
	}
	first, last := b.statuses()[0], b.statuses()[1]
	if first.Completed || first.NodePort != last.NodePort || first.ReadyReplicas != 0 {
		t.Errorf("before the pods were ready, status said %+v", first)
	}
}

func TestAMyWebThatWasThereBeforeTheController(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.create("site")
	b.create("other")
	b.start(Options{})
	b.complete("site")
	b.complete("other")
	b.Consistently(b.total).Should(Equal(10))
}

func TestPodsThatRiseOneByOneAreToldOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	b.create("site", three)
	b.Eventually(b.exists("Deployment", "site")).Should(BeTrue())
	for n := range int32(4) {
		b.rollout("site", func(d *appsv1.Deployment) {
			d.Status = ready(d, 3)
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = n, n
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
				Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Now()}}
		})
		b.look("site")
	}
	b.Eventually(b.completed("site")).Should(BeTrue())
	b.Consistently(b.requests).Should(Equal(fewest))
	if got := b.web("site").Status.ReadyReplicas; got != 3 {
		t.Errorf("%d pods are ready, says status", got)
	}
}

func TestARolloutThatStandsStillIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	b.create("site", three)
	b.Eventually(b.exists("Deployment", "site")).Should(BeTrue())
	moved := time.Now().Add(-stalled + 2*time.Second)
	b.rollout("site", func(d *appsv1.Deployment) {
		d.Status = ready(d, 3)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: moved}}}
	})
	b.look("site")
	if n := b.web("site").Status.ReadyReplicas; n != 0 {
		t.Errorf("the rollout moved a moment ago, status tells of %d pods already", n)
	}
	b.Eventually(func() int32 { return b.web("site").Status.ReadyReplicas }).Should(BeEquivalentTo(1))
	b.sentExactly(fewest)
}

func TestTheLossOfTheLastPodIsToldAtOnce(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.rollout("site", func(d *appsv1.Deployment) {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 0, 0, 1
	})
	b.Eventually(b.condition("site", webv1.ConditionAvailable), time.Second).Should(Equal("False NoReadyPod"))
	if s := b.web("site").Status; s.Completed || s.ReadyReplicas != 0 {
		t.Errorf("no pod is ready, status says %+v", s)
	}
}

func TestAMyWebWithoutPods(t *testing.T) {
	t.Parallel()
	b := newServed(t, func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) })
	if got := b.condition("site", webv1.ConditionAvailable)(); got != "False ScaledToZero" {
		t.Errorf("Available is %s", got)
	}
	b.sentExactly(fewest)
}

func TestASecondLookSendsNothing(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.forget()
	for range 5 {
		b.look("site")
	}
	b.sentExactly(nil)
}

func TestAControllerThatStartsAgainSendsNothing(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.Eventually(b.events).Should(Equal([]string{"Normal Complete"}))
	b.stop()
	before := b.looks.Load()
	b.start(Options{})
	b.Eventually(b.looks.Load).Should(BeNumerically(">", before))
	b.look("site")
	b.sentExactly(nil)
	b.Consistently(b.events, "500ms").Should(Equal([]string{"Normal Complete"}))
}

func TestAChangedSpecChangesTheChildrenInPlace(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	first, second := freePort(), freePort()
	type spec = webv1.MyWebSpec
	type requests = map[string]int
	for _, test := range []struct {
		name   string
		change func(*spec)
		want   requests // besides status
		holds  func(*appsv1.Deployment, *corev1.Service) bool
	}{
		{"another image", func(s *spec) { s.Image = "nginx:1.29-alpine" }, requests{"PATCH deployments": 1},
			func(d *appsv1.Deployment, _ *corev1.Service) bool {
				return d.Spec.Template.Spec.Containers[0].Image == "nginx:1.29-alpine"
			}},
		{"more replicas", func(s *spec) { s.Replicas = new(int32(3)) }, requests{"PATCH deployments": 1},
			func(d *appsv1.Deployment, _ *corev1.Service) bool { return *d.Spec.Replicas == 3 }},
		{"another page", func(s *spec) { s.PageContentHTML = new("<p>new</p>") }, requests{"PATCH configmaps": 1, "PATCH deployments": 1},
			func(d *appsv1.Deployment, _ *corev1.Service) bool {
				return d.Spec.Template.Annotations[annotationPageHash] == pageHash(b.web("site"))
			}},
		{"a node port", func(s *spec) { s.NodePortNumber = &first }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == first }},
		{"another node port", func(s *spec) { s.NodePortNumber = &second }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == second }},
		// The Service is written, to take off the annotation of the one that named a port.
		{"no node port: it is kept", func(s *spec) { s.NodePortNumber = nil }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == second }},
	} {
		b.run(test.name, func() {
			pods, service := b.child("Deployment", "site").(*appsv1.Deployment), b.child("Service", "site").(*corev1.Service)
			b.forget()
			b.edit("site", test.change)
			b.Eventually(func() int64 { return b.web("site").Status.ObservedGeneration }).Should(Equal(b.web("site").Generation))
			b.complete("site")
			b.look("site")
			got := b.requests()
			delete(got, "PUT mywebs/status")
			if diff := cmp.Diff(test.want, got); diff != "" {
				b.Error(diff)
			}
			newPods, newService := b.child("Deployment", "site").(*appsv1.Deployment), b.child("Service", "site").(*corev1.Service)
			if newPods.UID != pods.UID || newService.UID != service.UID || newService.Spec.ClusterIP != service.Spec.ClusterIP {
				b.Error("a child was made anew instead of changed")
			}
			if !test.holds(newPods, newService) || len(newService.Spec.Ports) != 1 {
				b.Errorf("the children are %+v %+v", newPods.Spec, newService.Spec)
			}
			if web := b.web("site"); web.Status.NodePort != newService.Spec.Ports[0].NodePort || web.Status.ReadyReplicas != *newPods.Spec.Replicas {
				b.Errorf("status is %+v", web.Status)
			}
		})
	}
}

func TestADeletedChildComesBackOnce(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	for kind, resource := range resources {
		b.run(kind, func() {
			uid, port := b.child(kind, "site").GetUID(), b.web("site").Status.NodePort
			b.forget()
			b.remove(kind, "site")
			b.Eventually(b.exists(kind, "site")).Should(BeTrue())
			if b.child(kind, "site").GetUID() == uid {
				b.Error("it was not deleted")
			}
			b.complete("site")
			tries := Equal(1)
			if kind == "Service" { // the API server frees its port a moment later
				tries = BeNumerically("<=", freeingTries)
			}
			again := b.child(kind, "site").GetUID()
			b.Consistently(func() int { return b.requests()["PATCH "+resource] }).Should(tries)
			if b.child(kind, "site").GetUID() != again {
				b.Error("it came back twice")
			}
			if got := b.web("site").Status.NodePort; got != port {
				b.Errorf("the page was served on port %d, now on %d", port, got)
			}
			got := b.requests()
			delete(got, "PUT mywebs/status")
			if len(got) != 1 {
				b.Errorf("other children were written: %v", got)
			}
		})
	}
	if got := b.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

// damages are what somebody does to a child, as JSON patches.
var damages = map[string]struct{ kind, patch string }{
	"the page":                                {"ConfigMap", replace("/data/index.html", `"defaced"`)},
	"the page removed":                        {"ConfigMap", removal("/data/index.html")},
	"a label of the page":                     {"ConfigMap", replace("/metadata/labels/app.kubernetes.io~1name", `"other"`)},
	"the owner of the page":                   {"ConfigMap", removal("/metadata/ownerReferences")},
	"the annotation of the page":              {"ConfigMap", removal("/metadata/annotations")},
	"the image":                               {"Deployment", replace("/spec/template/spec/containers/0/image", `"evil"`)},
	"the pull policy":                         {"Deployment", replace("/spec/template/spec/containers/0/imagePullPolicy", `"Always"`)},
	"the replicas":                            {"Deployment", replace("/spec/replicas", "7")},
	"the port of the container":               {"Deployment", replace("/spec/template/spec/containers/0/ports/0/containerPort", "81")},
	"the probe's path":                        {"Deployment", replace("/spec/template/spec/containers/0/readinessProbe/httpGet/path", `"/x"`)},
	"the probe":                               {"Deployment", removal("/spec/template/spec/containers/0/readinessProbe")},
	"escalation allowed":                      {"Deployment", replace("/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation", "true")},
	"the capabilities":                        {"Deployment", replace("/spec/template/spec/containers/0/securityContext/capabilities/drop", `["KILL"]`)},
	"the page writable":                       {"Deployment", removal("/spec/template/spec/containers/0/volumeMounts/0/readOnly")},
	"a mount removed":                         {"Deployment", removal("/spec/template/spec/containers/0/volumeMounts/1")},
	"a token mounted":                         {"Deployment", replace("/spec/template/spec/automountServiceAccountToken", "true")},
	"the user":                                {"Deployment", replace("/spec/template/spec/securityContext/runAsUser", "33")},
	"no seccomp":                              {"Deployment", replace("/spec/template/spec/securityContext/seccompProfile/type", `"Unconfined"`)},
	"a sysctl more":                           {"Deployment", `[{"op":"add","path":"/spec/template/spec/securityContext/sysctls/-","value":{"name":"kernel.shm_rmid_forced","value":"1"}}]`},
	"the page of another":                     {"Deployment", replace("/spec/template/spec/volumes/0/configMap/name", `"other"`)},
	"a probe of two types":                    {"Deployment", `[{"op":"remove","path":"/spec/template/spec/containers/0/readinessProbe/httpGet"},{"op":"add","path":"/spec/template/spec/containers/0/readinessProbe/tcpSocket","value":{"port":80}}]`},
	"a seccomp profile of two types":          {"Deployment", replace("/spec/template/spec/securityContext/seccompProfile", `{"type":"Localhost","localhostProfile":"p.json"}`)},
	"a volume of two types":                   {"Deployment", replace("/spec/template/spec/volumes/1", `{"name":"run","configMap":{"name":"other"}}`)},
	"the page's hash":                         {"Deployment", replace("/spec/template/metadata/annotations/operator.k8s-summit.org~1page-hash", `"x"`)},
	"a label of the pods":                     {"Deployment", removal("/spec/template/metadata/labels/app.kubernetes.io~1part-of")},
	"labels and owner of the Deployment":      {"Deployment", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
	"the type of the Service":                 {"Service", replace("/spec/type", `"LoadBalancer"`)},
	"the selector of the Service":             {"Service", replace("/spec/selector/app.kubernetes.io~1instance", `"other"`)},
	"the port of the Service":                 {"Service", replace("/spec/ports/0/port", "81")},
	"the name of the port":                    {"Service", replace("/spec/ports/0/name", `"x"`)},
	"the protocol of the port of the Service": {"Service", replace("/spec/ports/0/protocol", `"UDP"`)},
	"the target port":                         {"Service", replace("/spec/ports/0/targetPort", "8080")},
	"the node port":                           {"Service", replace("/spec/ports/0/nodePort", "30084")},
	"a label of the Service":                  {"Service", removal("/metadata/labels/app.kubernetes.io~1managed-by")},
	"labels and owner of the Service":         {"Service", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
}

func replace(path, value string) string {
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)
}

func removal(path string) string { return fmt.Sprintf(`[{"op":"remove","path":%q}]`, path) }

// bare is an object without what moves at every write.
func bare(obj object) object {
	obj = obj.DeepCopyObject().(object)
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetManagedFields(nil)
	if d, ok := obj.(*appsv1.Deployment); ok {
		d.Status = appsv1.DeploymentStatus{}
	}
	return obj
}

func TestOwnedFieldsAreRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	port := freePort()
	b.start(Options{}, func(c *Controller) { // many damages in a short time are not what is tested here
		c.restored.limit = map[cache.ObjectName]*rate.Limiter{cache.NewObjectName(b.namespace, "site"): rate.NewLimiter(rate.Inf, 1)}
	})
	b.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	b.complete("site")
	for _, name := range slices.Sorted(maps.Keys(damages)) {
		test := damages[name]
		if t.Failed() {
			break // what is not restored would be found again in the next ones
		}
		b.run(name, func() {
			before := bare(b.child(test.kind, "site"))
			b.forget()
			b.patch(test.kind, "site", test.patch)
			b.Eventually(func() string { return cmp.Diff(before, bare(b.child(test.kind, "site"))) }, 3*time.Second).Should(BeEmpty())
			b.look("site")
			got := b.requests()
			delete(got, "PUT mywebs/status")
			want := map[string]int{"PATCH " + resources[test.kind]: 1}
			if strings.Contains(name, "port of the ") || strings.HasSuffix(name, "of two types") {
				want["PATCH "+resources[test.kind]] = 2 // an apply is refused first
			}
			if diff := cmp.Diff(want, got); diff != "" {
				b.Error(diff)
			}
		})
	}
	if got := b.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

func TestFieldsOfOthersStay(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.forget()
	b.patch("Deployment", "site", `[{"op":"add","path":"/metadata/labels/team","value":"blue"},
		{"op":"add","path":"/metadata/annotations/note","value":"mine"},
		{"op":"add","path":"/spec/template/metadata/annotations/restarted-at","value":"noon"},
		{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"sidecar","image":"proxy"}}]`)
	b.patch("ConfigMap", "site", `[{"op":"add","path":"/data/robots.txt","value":"Disallow: /"}]`)
	b.patch("Service", "site", `[{"op":"add","path":"/spec/ports/-","value":{"name":"metrics","port":9090}},
		{"op":"replace","path":"/spec/externalTrafficPolicy","value":"Local"}]`)
	b.complete("site")
	b.look("site")
	got := b.requests()
	delete(got, "PUT mywebs/status")
	if len(got) != 0 {
		t.Errorf("others changed what is theirs, these requests were sent: %v", got)
	}
	b.edit("site", func(s *webv1.MyWebSpec) { s.Image, s.PageContentHTML = "nginx:1.29-alpine", new("new") })
	b.complete("site")
	d := b.child("Deployment", "site").(*appsv1.Deployment)
	if d.Labels["team"] != "blue" || d.Annotations["note"] != "mine" || d.Spec.Template.Annotations["restarted-at"] == "" || len(d.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("an apply took away what others set: %+v", d)
	}
	if data := b.child("ConfigMap", "site").(*corev1.ConfigMap).Data; len(data) != 2 || data[pageFile] != "new" {
		t.Errorf("the ConfigMap holds %q", data)
	}
	if ports := b.child("Service", "site").(*corev1.Service).Spec.Ports; len(ports) != 2 {
		t.Errorf("the ports are %+v", ports)
	}
}

func TestAMyWebThatIsGoneOrGoingIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newServed(t, func(w *webv1.MyWeb) { w.Finalizers = []string{"example.com/keep"} })
	b.forget()
	b.must(b.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	b.remove("ConfigMap", "site") // as the garbage collector would
	b.Consistently(b.total).Should(BeZero())
	web := b.web("site")
	web.Finalizers = nil
	_, err := b.webs.Update(t.Context(), web, metav1.UpdateOptions{})
	b.must(err)
	b.remove("Service", "site")
	b.Consistently(b.total).Should(BeZero())
	if b.exists("ConfigMap", "site")() || b.exists("Service", "site")() {
		t.Error("a child came back")
	}
}

func TestAMyWebThatIsMadeAnewGetsChildrenOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.must(b.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	web := b.create("site")
	b.Eventually(b.condition("site", webv1.ConditionProgressing)).Should(Equal("True WaitingForDeletion"))
	if got := b.condition("site", webv1.ConditionDegraded)(); got != "False AsExpected" {
		t.Errorf("Degraded is %s", got)
	}
	if s := b.web("site").Status; s.ReadyReplicas != 0 || s.NodePort != 0 {
		t.Errorf("status tells of pods and ports of the old one: %+v", s)
	}
	b.forget()
	b.Consistently(b.total).Should(BeZero())
	for kind := range resources { // as the garbage collector would
		b.remove(kind, "site")
	}
	b.complete("site")
	for kind := range resources {
		if !metav1.IsControlledBy(b.child(kind, "site"), web) {
			t.Errorf("%s is not controlled by the new MyWeb", kind)
		}
	}
	if got := b.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

func TestAnAllocatedNodePortSurvivesWhatOthersDoToThePort(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	before := b.child("Service", "site").(*corev1.Service).Spec
	b.patch("Service", "site", replace("/spec/ports/0/port", "81"))
	b.Eventually(func() string {
		return cmp.Diff(before, b.child("Service", "site").(*corev1.Service).Spec)
	}, atOnce).Should(BeEmpty())
	b.look("site")
	if got := b.web("site").Status.NodePort; got != before.Ports[0].NodePort {
		t.Errorf("the page was served on port %d, now on %d", before.Ports[0].NodePort, got)
	}
}
