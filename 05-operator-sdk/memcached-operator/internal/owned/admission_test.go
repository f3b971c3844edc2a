package owned

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These helpers install admission policies on a real API server, each for one namespace and until its test ends.

// marker is a label of a ConfigMap. Each policy sets or refuses it, so that a test knows when the policy is enforced.
const marker = "admissiontest"

// mutate installs a policy that applies a configuration, a CEL expression such as
// `Object{metadata: Object.metadata{labels: {"a": "b"}}}`, to a resource, and returns a function that removes it.
func mutate(t *testing.T, c client.Client, namespace, group, resource, expression string) (remove func()) {
	t.Helper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + resource},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      new(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints:   match(namespace, group, resource),
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression}}},
		},
	}
	marking := policy.DeepCopy()
	marking.Name += "-marker"
	marking.Spec.MatchConstraints = match(namespace, "", "configmaps")
	marking.Spec.Mutations[0].ApplyConfiguration.Expression =
		`Object{metadata: Object.metadata{labels: {"` + marker + `": "` + resource + `"}}}`
	for _, p := range []*admissionv1.MutatingAdmissionPolicy{policy, marking} { // the policies are loaded together
		binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: p.ObjectMeta,
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: p.Name}}
		create(t, c, p, binding)
	}
	enforced := func() bool {
		probe := probe(namespace, "")
		return c.Create(t.Context(), probe, client.DryRunAll) == nil && probe.Labels[marker] == resource
	}
	await(t, true, enforced)
	return func() {
		t.Helper()
		for _, p := range []*admissionv1.MutatingAdmissionPolicy{policy, marking} {
			if err := c.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		await(t, false, enforced)
	}
}

// validate installs a policy that refuses a resource for which a CEL expression is false. A second CEL expression
// computes the message. validate returns a function that removes the policy.
func validate(t *testing.T, c client.Client, namespace, group, resource, expression, message string) (remove func()) {
	t.Helper()
	refuse := metav1.StatusReasonInvalid
	rules := match(namespace, group, resource)
	rules.ResourceRules = append(rules.ResourceRules, match(namespace, "", "configmaps").ResourceRules...)
	unmarked := `object.kind == "ConfigMap" ? !("` + marker + `" in object.metadata.?labels.orValue({})) : (` +
		expression + `)`
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + resource},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionv1.Fail),
			MatchConstraints: rules,
			Validations:      []admissionv1.Validation{{Expression: unmarked, MessageExpression: message, Reason: &refuse}},
		},
	}
	create(t, c, policy, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
	enforced := func() bool { return c.Create(t.Context(), probe(namespace, resource), client.DryRunAll) != nil }
	await(t, true, enforced)
	return func() {
		t.Helper()
		if err := c.Delete(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		await(t, false, enforced)
	}
}

func match(namespace, group, resource string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"},
				Resources: []string{resource}}}}},
	}
}

func probe(namespace, label string) *corev1.ConfigMap {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"}}
	if label != "" {
		probe.Labels = map[string]string{marker: label}
	}
	return probe
}

// create creates objects, and deletes them when the test ends.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.Background(), obj)); err != nil {
				t.Error(err)
			}
		})
	}
}

// await waits until a policy is enforced, or no longer enforced: the API server loads policies in the background.
func await(t *testing.T, want bool, enforced func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return enforced() == want, nil })
	if err != nil {
		t.Fatalf("the policy is enforced: not %v after 30 s", want)
	}
}
