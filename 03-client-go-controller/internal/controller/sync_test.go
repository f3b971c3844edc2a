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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// These tests run the whole controller, with its caches, against a real API server. They judge what lies
// there in the end, and the requests that it took.

// fewest is what one MyWeb costs from creation to completed.
var fewest = map[string]int{"PATCH configmaps": 1, "PATCH deployments": 1, "PATCH services": 1, "PUT mywebs/status": 2}

func (f *fixture) sentExactly(want map[string]int) {
	f.Helper()
	if diff := cmp.Diff(want, f.requests()); diff != "" {
		f.Errorf("other requests than expected:\n%s", diff)
	}
}

func TestFromNothingToCompleted(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.Consistently(f.requests).Should(Equal(fewest))
	web := f.web("site")
	if s := web.Status; s.ReadyReplicas != 1 || s.NodePort < 30000 || s.ObservedGeneration != web.Generation {
		t.Errorf("all is ready, status reports %+v", s)
	}
	for kind := range resources {
		if child := f.child(kind, "site"); !metav1.IsControlledBy(child, web) {
			t.Errorf("%s is not controlled by the MyWeb", kind)
		}
	}
	if got := f.child("ConfigMap", "site").(*corev1.ConfigMap).Data; got[pageFile] != "<h1>Hello</h1>" || len(got) != 1 {
		t.Errorf("the ConfigMap holds %q", got)
	}
	f.Eventually(f.events).Should(Equal([]string{"Normal Complete"}))
	first, last := f.statuses()[0], f.statuses()[1]
	if first.Completed || first.NodePort != last.NodePort || first.ReadyReplicas != 0 {
		t.Errorf("before the pods were ready, status said %+v", first)
	}
}

func TestAMyWebThatWasThereBeforeTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("site")
	f.create("other")
	f.start()
	f.complete("site")
	f.complete("other")
	f.Consistently(f.total).Should(Equal(10))
}

// newRollout returns a fixture with a MyWeb of three pods, of which none is ready.
func newRollout(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.start()
	f.create("site", three)
	f.Eventually(f.exists("Deployment", "site")).Should(BeTrue())
	return f
}

func TestPodsThatBecomeReadyOneByOneAreReportedOnce(t *testing.T) {
	t.Parallel()
	f := newRollout(t)
	for n := range int32(4) {
		f.rollout("site", func(d *appsv1.Deployment) {
			d.Status = ready(d, 3)
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = n, n
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
				Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(time.Now().Add(time.Minute))}} // however slow this machine is
		})
		f.sync("site")
	}
	f.Eventually(f.completed("site")).Should(BeTrue())
	f.Consistently(f.requests).Should(Equal(fewest))
	if got := f.web("site").Status.ReadyReplicas; got != 3 {
		t.Errorf("%d pods are ready, says status", got)
	}
}

func TestAStalledRolloutIsReported(t *testing.T) {
	t.Parallel()
	f := newRollout(t)
	moved := time.Now()
	f.rollout("site", func(d *appsv1.Deployment) {
		d.Status = ready(d, 3)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: moved}}}
	})
	f.sync("site")
	n := f.web("site").Status.ReadyReplicas
	if stalls := moved.Truncate(time.Second).Add(stalled); n != 0 && time.Now().Before(stalls) {
		t.Errorf("the rollout moved a moment ago, status reports %d pods already", n)
	}
	f.Eventually(func() int32 { return f.web("site").Status.ReadyReplicas }).Should(BeEquivalentTo(1))
	f.sentExactly(fewest)
}

func TestTheLossOfTheLastPodIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.rollout("site", func(d *appsv1.Deployment) {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 0, 0, 1
	})
	f.Eventually(f.condition("site", webv1.ConditionAvailable)).Should(Equal("False NoReadyPod"))
	if s := f.web("site").Status; s.Completed || s.ReadyReplicas != 0 {
		t.Errorf("no pod is ready, status reports %+v", s)
	}
}

func TestAMyWebWithoutPods(t *testing.T) {
	t.Parallel()
	f := newServed(t, func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) })
	if got := f.condition("site", webv1.ConditionAvailable)(); got != "False ScaledToZero" {
		t.Errorf("Available is %s", got)
	}
	f.sentExactly(fewest)
}

func TestASecondSyncSendsNothing(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.forget()
	for range 5 {
		f.sync("site")
	}
	f.sentExactly(nil)
}

func TestAControllerThatStartsAgainSendsNothing(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.Eventually(f.events).Should(Equal([]string{"Normal Complete"}))
	f.stop()
	before := f.syncs.Load()
	f.start()
	f.Eventually(f.syncs.Load).Should(BeNumerically(">", before))
	f.sync("site")
	f.sentExactly(nil)
	f.Consistently(f.events, "500ms").Should(Equal([]string{"Normal Complete"}))
}

func TestAChangedSpecChangesTheChildrenInPlace(t *testing.T) {
	t.Parallel()
	f := newServed(t)
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
		{"another page", func(s *spec) { s.PageContentHTML = new("<p>new</p>") },
			requests{"PATCH configmaps": 1, "PATCH deployments": 1},
			func(d *appsv1.Deployment, _ *corev1.Service) bool {
				return d.Spec.Template.Annotations[pageHashKey] == pageHash(f.web("site"))
			}},
		{"a node port", func(s *spec) { s.NodePortNumber = &first }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == first }},
		{"another node port", func(s *spec) { s.NodePortNumber = &second }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == second }},
		// The Service is written, to take off the annotation of the one that named a port.
		{"no node port: it is kept", func(s *spec) { s.NodePortNumber = nil }, requests{"PATCH services": 1},
			func(_ *appsv1.Deployment, s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == second }},
	} {
		f.run(test.name, func() {
			pods, service := f.child("Deployment", "site").(*appsv1.Deployment), f.child("Service", "site").(*corev1.Service)
			f.forget()
			f.edit("site", test.change)
			f.Eventually(func() int64 { return f.web("site").Status.ObservedGeneration }).Should(Equal(f.web("site").Generation))
			f.complete("site")
			f.sync("site")
			got := f.requests()
			delete(got, "PUT mywebs/status")
			if diff := cmp.Diff(test.want, got); diff != "" {
				f.Error(diff)
			}
			newPods, newService := f.child("Deployment", "site").(*appsv1.Deployment), f.child("Service",
				"site").(*corev1.Service)
			if newPods.UID != pods.UID || newService.UID != service.UID || newService.Spec.ClusterIP != service.Spec.ClusterIP {
				f.Error("a child was made anew instead of changed")
			}
			if !test.holds(newPods, newService) || len(newService.Spec.Ports) != 1 {
				f.Errorf("the children are %+v %+v", newPods.Spec, newService.Spec)
			}
			if web := f.web("site"); web.Status.NodePort != newService.Spec.Ports[0].NodePort ||
				web.Status.ReadyReplicas != *newPods.Spec.Replicas {
				f.Errorf("status is %+v", web.Status)
			}
		})
	}
}

func TestADeletedChildComesBackOnce(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	for kind, resource := range resources {
		f.run(kind, func() {
			uid, port := f.child(kind, "site").GetUID(), f.web("site").Status.NodePort
			f.forget()
			f.remove(kind, "site")
			f.Eventually(f.exists(kind, "site")).Should(BeTrue())
			if f.child(kind, "site").GetUID() == uid {
				f.Error("it was not deleted")
			}
			f.complete("site")
			tries := Equal(1)
			if kind == "Service" { // the API server frees its port a moment later
				tries = BeNumerically("<=", freeingTries)
			}
			second := f.child(kind, "site").GetUID()
			f.Consistently(func() int { return f.requests()["PATCH "+resource] }).Should(tries)
			if f.child(kind, "site").GetUID() != second {
				f.Error("it came back twice")
			}
			if got := f.web("site").Status.NodePort; got != port {
				f.Errorf("the page was served on port %d, now on %d", port, got)
			}
			got := f.requests()
			delete(got, "PUT mywebs/status")
			if len(got) != 1 {
				f.Errorf("other children were written: %v", got)
			}
		})
	}
	if got := f.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

// damages are what somebody does to a child, as JSON patches.
var damages = map[string]struct{ kind, patch string }{
	"the page":                   {"ConfigMap", replace("/data/index.html", `"defaced"`)},
	"the page removed":           {"ConfigMap", removal("/data/index.html")},
	"a label of the page":        {"ConfigMap", replace("/metadata/labels/app.kubernetes.io~1name", `"other"`)},
	"the owner of the page":      {"ConfigMap", removal("/metadata/ownerReferences")},
	"the annotation of the page": {"ConfigMap", removal("/metadata/annotations")},
	"the image":                  {"Deployment", replace("/spec/template/spec/containers/0/image", `"evil"`)},
	"the replicas":               {"Deployment", replace("/spec/replicas", "7")},
	"the port of the container":  {"Deployment", replace("/spec/template/spec/containers/0/ports/0/containerPort", "81")},
	"the probe's path": {
		"Deployment", replace("/spec/template/spec/containers/0/readinessProbe/httpGet/path", `"/x"`)},
	"the probe": {"Deployment", removal("/spec/template/spec/containers/0/readinessProbe")},
	"escalation allowed": {
		"Deployment", replace("/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation", "true")},
	"the capabilities": {
		"Deployment", replace("/spec/template/spec/containers/0/securityContext/capabilities/drop", `["KILL"]`)},
	"the page writable": {"Deployment", removal("/spec/template/spec/containers/0/volumeMounts/0/readOnly")},
	"a mount removed":   {"Deployment", removal("/spec/template/spec/containers/0/volumeMounts/1")},
	"a token mounted":   {"Deployment", replace("/spec/template/spec/automountServiceAccountToken", "true")},
	"the user":          {"Deployment", replace("/spec/template/spec/securityContext/runAsUser", "33")},
	"no seccomp": {"Deployment",
		replace("/spec/template/spec/securityContext/seccompProfile/type", `"Unconfined"`)},
	"a sysctl more": {"Deployment", `[{"op":"add",` +
		`"path":"/spec/template/spec/securityContext/sysctls/-","value":{"name":"kernel.shm_rmid_forced","value":"1"}}]`},
	"the page of another": {"Deployment", replace("/spec/template/spec/volumes/0/configMap/name", `"other"`)},
	"a probe of two types": {
		"Deployment", `[{"op":"remove","path":"/spec/template/spec/containers/0/readinessProbe/httpGet"},{"op":"add",` +
			`"path":"/spec/template/spec/containers/0/readinessProbe/tcpSocket","value":{"port":80}}]`},
	"a volume of two types": {
		"Deployment", replace("/spec/template/spec/volumes/1", `{"name":"run","configMap":{"name":"other"}}`)},
	"the page's hash": {
		"Deployment", replace("/spec/template/metadata/annotations/operator.k8s-summit.org~1page-hash", `"x"`)},
	"a label of the pods": {"Deployment", removal("/spec/template/metadata/labels/app.kubernetes.io~1part-of")},
	"labels and owner of the Deployment": {
		"Deployment", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
	"the type of the Service": {"Service", replace("/spec/type", `"LoadBalancer"`)},
	"the selector of the Service": {
		"Service", replace("/spec/selector/app.kubernetes.io~1instance", `"other"`)},
	"the port of the Service":                 {"Service", replace("/spec/ports/0/port", "81")},
	"the name of the port":                    {"Service", replace("/spec/ports/0/name", `"x"`)},
	"the protocol of the port of the Service": {"Service", replace("/spec/ports/0/protocol", `"UDP"`)},
	"the target port":                         {"Service", replace("/spec/ports/0/targetPort", "8080")},
	"the node port":                           {"Service", replace("/spec/ports/0/nodePort", "30084")},
	"a label of the Service":                  {"Service", removal("/metadata/labels/app.kubernetes.io~1managed-by")},
	"labels and owner of the Service": {
		"Service", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
}

func replace(path, value string) string {
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)
}

func removal(path string) string { return fmt.Sprintf(`[{"op":"remove","path":%q}]`, path) }

// A field that is no element of a list, and that excludes what somebody added beside it: restoring it would take
// away what others set.
func TestAnEditThatAnApplyCannotUndoIsReported(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	const profile = "/spec/template/spec/securityContext/seccompProfile"
	f.patch("Deployment", "site", replace(profile, `{"type":"Localhost","localhostProfile":"p.json"}`))
	f.Eventually(f.condition("site", webv1.ConditionDegraded)).Should(Equal("True " + webv1.ReasonChildRejected))
	if got := f.message("site", webv1.ConditionDegraded); !strings.Contains(got, "localhostProfile") {
		t.Errorf("the message does not name the field: %s", got)
	}
	f.patch("Deployment", "site", replace(profile, `{"type":"RuntimeDefault"}`))
	f.complete("site")
}

// bare is an object without what moves at every write.
func bare(obj myweb.Object) myweb.Object {
	obj = obj.DeepCopyObject().(myweb.Object)
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
	f := newFixture(t)
	port := freePort()
	f.start(func(c *Controller) { c.clock = &fastClock{} }) // the limit on corrections is not tested here
	f.create("site", func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port })
	f.complete("site")
	for _, name := range slices.Sorted(maps.Keys(damages)) {
		test := damages[name]
		if t.Failed() {
			break // what is not restored would be found again in the next ones
		}
		f.run(name, func() {
			before := bare(f.child(test.kind, "site"))
			f.forget()
			f.patch(test.kind, "site", test.patch)
			f.Eventually(func() string { return cmp.Diff(before, bare(f.child(test.kind, "site"))) }).Should(BeEmpty())
			f.sync("site")
			got := f.requests()
			delete(got, "PUT mywebs/status")
			want := map[string]int{"PATCH " + resources[test.kind]: 1}
			if strings.Contains(name, "port of the ") || strings.HasSuffix(name, "of two types") {
				want["PATCH "+resources[test.kind]] = 2 // an apply is refused, elements are replaced
			}
			if strings.Contains(test.patch, "ownerReferences") {
				want["LIST mywebs"] = 1 // whether the MyWeb is being deleted
			}
			if diff := cmp.Diff(want, got); diff != "" {
				f.Error(diff)
			}
		})
	}
	if got := f.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

func TestFieldsOfOthersStay(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.forget()
	f.patch("Deployment", "site", `[{"op":"add","path":"/metadata/labels/team","value":"blue"},
		{"op":"add","path":"/metadata/annotations/note","value":"mine"},
		{"op":"add","path":"/spec/template/metadata/annotations/restarted-at","value":"noon"},
		{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"sidecar","image":"proxy"}}]`)
	f.patch("ConfigMap", "site", `[{"op":"add","path":"/data/robots.txt","value":"Disallow: /"}]`)
	f.patch("Service", "site", `[{"op":"add","path":"/spec/ports/-","value":{"name":"metrics","port":9090}},
		{"op":"replace","path":"/spec/externalTrafficPolicy","value":"Local"}]`)
	f.complete("site")
	f.sync("site")
	got := f.requests()
	delete(got, "PUT mywebs/status")
	if len(got) != 0 {
		t.Errorf("others changed what is theirs, these requests were sent: %v", got)
	}
	f.edit("site", func(s *webv1.MyWebSpec) { s.Image, s.PageContentHTML = "nginx:1.29-alpine", new("new") })
	f.complete("site")
	d := f.child("Deployment", "site").(*appsv1.Deployment)
	if d.Labels["team"] != "blue" || d.Annotations["note"] != "mine" ||
		d.Spec.Template.Annotations["restarted-at"] == "" || len(d.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("an apply took away what others set: %+v", d)
	}
	if data := f.child("ConfigMap", "site").(*corev1.ConfigMap).Data; len(data) != 2 || data[pageFile] != "new" {
		t.Errorf("the ConfigMap holds %q", data)
	}
	if ports := f.child("Service", "site").(*corev1.Service).Spec.Ports; len(ports) != 2 {
		t.Errorf("the ports are %+v", ports)
	}
}

func TestAMyWebThatIsGoneOrGoingIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newServed(t, func(w *webv1.MyWeb) { w.Finalizers = []string{"example.com/keep"} })
	f.forget()
	// Before the cache shows the deletion, a removed child is rightly made again.
	cached := func() (*webv1.MyWeb, error) {
		return f.controller.informers.MyWebs.Lister().MyWebs(f.namespace).Get("site")
	}
	f.must(f.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	f.Eventually(cached).ShouldNot(HaveField("DeletionTimestamp", BeNil()))
	f.remove("ConfigMap", "site") // as the garbage collector would
	f.Consistently(f.total).Should(BeZero())
	web := f.web("site")
	web.Finalizers = nil
	_, err := f.webs.Update(t.Context(), web, metav1.UpdateOptions{})
	f.must(err)
	f.Eventually(func() error { _, err := cached(); return err }).Should(MatchError(apierrors.IsNotFound, "is not found"))
	f.remove("Service", "site")
	f.Consistently(f.total).Should(BeZero())
	if f.exists("ConfigMap", "site")() || f.exists("Service", "site")() {
		t.Error("a child came back")
	}
}

func TestAMyWebThatIsMadeAnewGetsChildrenOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.must(f.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	web := f.create("site")
	f.Eventually(f.condition("site", webv1.ConditionProgressing)).Should(Equal("True WaitingForDeletion"))
	if got := f.condition("site", webv1.ConditionDegraded)(); got != "False AsExpected" {
		t.Errorf("Degraded is %s", got)
	}
	if s := f.web("site").Status; s.ReadyReplicas != 0 || s.NodePort != 0 {
		t.Errorf("status reports pods and ports of the old one: %+v", s)
	}
	f.forget()
	f.Consistently(f.total).Should(BeZero())
	for kind := range resources { // as the garbage collector would
		f.remove(kind, "site")
	}
	f.complete("site")
	for kind := range resources {
		if !metav1.IsControlledBy(f.child(kind, "site"), web) {
			t.Errorf("%s is not controlled by the new MyWeb", kind)
		}
	}
	if got := f.warnings(); len(got) > 0 {
		t.Errorf("a warning was recorded: %+v", got)
	}
}

func TestAnAllocatedNodePortSurvivesWhatOthersDoToThePort(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	before := f.child("Service", "site").(*corev1.Service).Spec
	f.patch("Service", "site", replace("/spec/ports/0/port", "81"))
	f.Eventually(func() string {
		return cmp.Diff(before, f.child("Service", "site").(*corev1.Service).Spec)
	}, atOnce).Should(BeEmpty())
	f.sync("site")
	if got := f.web("site").Status.NodePort; got != before.Ports[0].NodePort {
		t.Errorf("the page was served on port %d, now on %d", before.Ports[0].NodePort, got)
	}
}
