package controller

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	"the page of another": {"Deployment", replace("/spec/template/spec/volumes/0/configMap/name", `"other"`)},
	"the page's hash": {
		"Deployment", replace("/spec/template/metadata/annotations/operator.k8s-summit.org~1page-hash", `"x"`)},
	"a label of the pods": {"Deployment", removal("/spec/template/metadata/labels/app.kubernetes.io~1part-of")},
	"labels and owner of the Deployment": {
		"Deployment", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
	"the type of the Service": {"Service", replace("/spec/type", `"LoadBalancer"`)},
	"the selector of the Service": {
		"Service", replace("/spec/selector/app.kubernetes.io~1instance", `"other"`)},
	"the port of the Service": {"Service", replace("/spec/ports/0/port", "81")},
	"the name of the port":    {"Service", replace("/spec/ports/0/name", `"x"`)},
	"the target port":         {"Service", replace("/spec/ports/0/targetPort", "8080")},
	"the node port":           {"Service", replace("/spec/ports/0/nodePort", "30084")},
	"a label of the Service":  {"Service", removal("/metadata/labels/app.kubernetes.io~1managed-by")},
	"labels and owner of the Service": {
		"Service", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`},
}

func replace(path, value string) string {
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)
}

func removal(path string) string { return fmt.Sprintf(`[{"op":"remove","path":%q}]`, path) }

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
	f.start()
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
			if diff := cmp.Diff(want, got); diff != "" {
				f.Error(diff)
			}
		})
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
