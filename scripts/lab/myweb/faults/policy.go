package faults

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// notAllowed is the message of a policy of the lab.
const notAllowed = "the lab does not allow it"

// deleting returns a function that deletes objects of a name. The check calls it at its end, too.
func deleting(t *suite.T, name string, deletes ...func(context.Context, string, metav1.DeleteOptions) error) (
	away func(context.Context) error) {
	away = func(ctx context.Context) error {
		for _, remove := range deletes {
			if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	t.Cleanup(func(ctx context.Context) { _ = away(ctx) }) // they may be gone already
	return away
}

// forbid makes a policy deny objects that do not meet a CEL expression, in the namespace of the check. When the
// policy is in force, it returns a function that removes it.
func forbid(t *suite.T, group, resource, unless, message string) (allow func()) {
	kube := t.Fixture.Kube.AdmissionregistrationV1()
	policies, bindings := kube.ValidatingAdmissionPolicies(), kube.ValidatingAdmissionPolicyBindings()
	meta := metav1.ObjectMeta{Name: t.Namespace}
	away := deleting(t, meta.Name, bindings.Delete, policies.Delete)
	_, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: matching(group, resource),
			Validations: []admissionv1.Validation{{Expression: `object.metadata.name != "probe"`},
				{Message: message, Expression: `object.kind == "Secret" || ` + unless}},
		}}, metav1.CreateOptions{})
	t.Must(err, "make an admission policy")
	_, err = bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, MatchResources: here(t),
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{})
	t.Must(err, "bind the admission policy")
	t.Eventually("the policy is in force", 0, func() error {
		if _, err := probe(t); err == nil {
			return fmt.Errorf("a probe was not denied")
		}
		return nil
	})
	return func() { t.Must(away(t.Context()), "delete the admission policy") }
}

// mutate makes a policy change every object of a resource in the namespace of the check by a JSON patch in CEL. When
// the policy is in force, it returns a function that removes it.
func mutate(t *suite.T, group, resource, patch string) (stop func()) {
	kube := t.Fixture.Kube.AdmissionregistrationV1()
	policies, bindings := kube.MutatingAdmissionPolicies(), kube.MutatingAdmissionPolicyBindings()
	meta := metav1.ObjectMeta{Name: t.Namespace}
	away := deleting(t, meta.Name, bindings.Delete, policies.Delete)
	all := `object.kind == "Secret" ? [JSONPatch{op: "add", path: "/immutable", value: true}] : ` + patch
	_, err := policies.Create(t.Context(), &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   matching(group, resource),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			FailurePolicy:      new(admissionv1.Fail),
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: all}}},
		}}, metav1.CreateOptions{})
	t.Must(err, "make a mutating policy")
	_, err = bindings.Create(t.Context(), &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, MatchResources: here(t)}},
		metav1.CreateOptions{})
	t.Must(err, "bind the mutating policy")
	isMutated := func() (bool, error) {
		s, err := probe(t)
		return err == nil && s.Immutable != nil && *s.Immutable, err
	}
	t.Eventually("the policy is in force", 0, func() error {
		if mutated, err := isMutated(); !mutated {
			return errors.Join(errors.New("a probe was not mutated"), err)
		}
		return nil
	})
	return func() {
		t.Must(away(t.Context()), "delete the mutating policy")
		t.Eventually("the policy is gone", 0, func() error {
			if mutated, err := isMutated(); mutated || err != nil {
				return errors.Join(fmt.Errorf("a probe was mutated: %v", mutated), err)
			}
			return nil
		})
	}
}

// matching selects created and changed objects of a resource, and Secrets, for the probe.
func matching(group, resource string) *admissionv1.MatchResources {
	rule := func(group, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"},
				Resources: []string{resource}}}}
	}
	rules := []admissionv1.NamedRuleWithOperations{rule(group, resource), rule("", "secrets")}
	return &admissionv1.MatchResources{ResourceRules: rules}
}

// here selects the namespace of the check.
func here(t *suite.T) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": t.Namespace}}}
}

// probe creates a Secret in a dry run, to see the effect of the policies.
func probe(t *suite.T) (*corev1.Secret, error) {
	return t.Fixture.Kube.CoreV1().Secrets(t.Namespace).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
