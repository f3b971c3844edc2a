package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// mutateServices makes an admission policy change a label of all Services in the fixture's namespace, and
// waits until it does.
func (b *fixture) mutateServices() (remove func()) {
	b.t.Helper()
	meta := metav1.ObjectMeta{Name: b.key.Namespace}
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": meta.Name}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"services"}}}}},
		},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("app.kubernetes.io/part-of"), ` +
				`value: "theirs"}]`}}},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name}}
	b.must(b.Create(b.t.Context(), policy))
	b.must(b.Create(b.t.Context(), binding))
	b.eventually(func() bool { return b.partOf() == "theirs" })
	return func() {
		b.must(b.Delete(b.t.Context(), binding))
		b.must(b.Delete(b.t.Context(), policy))
		b.eventually(func() bool { return b.partOf() == "ours" })
	}
}

// partOf is the label of a Service that is created as a dry run.
func (b *fixture) partOf() string {
	probe := mywebtest.Unmanaged("Service", b.key.Namespace, "probe")
	probe.SetLabels(map[string]string{"app.kubernetes.io/part-of": "ours"})
	b.must(b.Create(b.t.Context(), probe, client.DryRunAll))
	return probe.GetLabels()["app.kubernetes.io/part-of"]
}

func (b *fixture) eventually(done func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("it did not happen within 20 s")
		}
	}
}

func TestAChildThatAPolicyMutatesIsReportedAndNotAppliedAgain(t *testing.T) {
	b := newFixture(t)
	remove := b.mutateServices()
	if n := b.reconcile(); n != 4 {
		t.Errorf("%d writes, want three children and the status", n)
	}
	get(b, &appsv1.Deployment{})
	if got := get(b, &corev1.Service{}).Labels["app.kubernetes.io/part-of"]; got != "theirs" {
		t.Fatalf("the policy did nothing: %q", got)
	}
	mutated := func() {
		t.Helper()
		c, web := b.condition(webv1.ConditionDegraded), get(b, &webv1.MyWeb{})
		if c.Reason != webv1.ReasonChildMutated || !strings.Contains(c.Message, "Service "+b.key.Name) ||
			!strings.Contains(c.Message, "metadata.labels[app.kubernetes.io/part-of]:") ||
			c.ObservedGeneration != web.Generation {
			t.Errorf("Degraded is %+v", c)
		}
		if s := web.Status; s.Completed || s.ObservedGeneration != web.Generation {
			t.Errorf("status is %+v", s)
		}
	}
	mutated()
	b.deploy()
	b.reconcile()
	for range 5 {
		if n := b.reconcile(); n != 0 {
			t.Errorf("nothing changed, and %d writes were sent", n)
		}
	}
	edit(b, &webv1.MyWeb{}, func(w *webv1.MyWeb) { w.Spec.NodePortNumber = new(freePort()) })
	if n := b.reconcile(); n != 2 {
		t.Errorf("another desired state: %d writes, want the Service and the status", n)
	}
	mutated()
	if diff := cmp.Diff([]string{"Warning ChildMutated"}, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
	b.startAgain()
	if n := b.reconcile(); n != 1 {
		t.Errorf("a restarted operator sent %d writes, want one for each mutated child", n)
	}
	if recorded := b.recorded(); len(recorded) > 0 {
		t.Errorf("events: %v", recorded)
	}
	remove()
	b.must(b.Delete(t.Context(), get(b, &corev1.Service{}))) // as the message says
	b.reconcile()
	if s := get(b, &webv1.MyWeb{}).Status; !s.Completed {
		t.Errorf("status is %+v", s)
	}
	if diff := cmp.Diff([]string{"Normal Recovered", "Normal Complete"}, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
}
