package examine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is the message of a policy, which the operator should report to its users.
const refusal = "the examination does not allow this object"

// probe is a ConfigMap that only shows whether a policy is in force.
const (
	probe   = "examine-probe"
	isProbe = `object.metadata.name == "` + probe + `"`
)

// is returns a CEL expression that matches a child.
func is(c child) string {
	return fmt.Sprintf("(request.resource.resource == %q && object.metadata.name == %q)", c.GVR.Resource, c.Name)
}

// refuse makes a policy refuse a child in the namespace, until allow is called.
func (t *trial) refuse(c child) (allow func() error, err error) {
	kube := t.fixture.Kube.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: t.namespace}
	allow = func() error {
		return errors.Join(kube.ValidatingAdmissionPolicyBindings().Delete(t.ctx, meta.Name, metav1.DeleteOptions{}),
			kube.ValidatingAdmissionPolicies().Delete(t.ctx, meta.Name, metav1.DeleteOptions{}))
	}
	_, err = kube.ValidatingAdmissionPolicies().Create(t.ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: matching(c),
			Validations: []admissionv1.Validation{{Message: refusal, Expression: "!(" + isProbe + " || " + is(c) + ")"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	_, err = kube.ValidatingAdmissionPolicyBindings().Create(t.ctx,
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, MatchResources: t.here(),
				ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return allow, t.eventually(20*time.Second, func() error {
		if _, err := t.probe(); err == nil {
			return errors.New("the policy is not in force")
		}
		return nil
	})
}

// mutate makes a policy change a field of a child in the namespace, until stop is called.
func (t *trial) mutate(m mutation) (stop func() error, err error) {
	kube := t.fixture.Kube.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: t.namespace}
	stop = func() error {
		return errors.Join(kube.MutatingAdmissionPolicyBindings().Delete(t.ctx, meta.Name, metav1.DeleteOptions{}),
			kube.MutatingAdmissionPolicies().Delete(t.ctx, meta.Name, metav1.DeleteOptions{}))
	}
	value, err := json.Marshal(m.value)
	if err != nil {
		return nil, err
	}
	expression := fmt.Sprintf(`%s ? [JSONPatch{op: "add", path: "/immutable", value: true}] : `+
		`%s ? [JSONPatch{op: "replace", path: %q, value: %s}] : []`, isProbe, is(m.child), m.pointer, value)
	_, err = kube.MutatingAdmissionPolicies().Create(t.ctx, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: matching(m.child),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: expression}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	_, err = kube.MutatingAdmissionPolicyBindings().Create(t.ctx,
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta,
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name,
				MatchResources: t.here()}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return stop, t.eventually(20*time.Second, func() error {
		if u, err := t.probe(); err != nil || u.Immutable == nil {
			return errors.Join(errors.New("the policy is not in force"), err)
		}
		return nil
	})
}

// matching selects writes of a child's resource, and of ConfigMaps for the probe.
func matching(c child) *admissionv1.MatchResources {
	rule := func(group, version, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version},
				Resources: []string{resource}}}}
	}
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
		rule(c.GVR.Group, c.GVR.Version, c.GVR.Resource), rule("", "v1", "configmaps")}}
}

// here selects the namespace of the trial; nil selects all, for a sample without a namespace.
func (t *trial) here() *admissionv1.MatchResources {
	if t.target.cluster {
		return nil
	}
	return &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: t.namespace}}}
}

// probe creates a ConfigMap in a dry run, to see the effect of the policies.
func (t *trial) probe() (*corev1.ConfigMap, error) {
	return t.fixture.Kube.CoreV1().ConfigMaps(t.namespace).Create(t.ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probe}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// limit makes a quota refuse all children of a resource, until lift is called.
func (t *trial) limit(c child) (lift func() error, err error) {
	quotas := t.fixture.Kube.CoreV1().ResourceQuotas(t.namespace)
	name := corev1.ResourceName("count/" + c.GVR.GroupResource().String())
	_, err = quotas.Create(t.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "examine"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("0")}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	lift = func() error {
		err := quotas.Delete(t.ctx, "examine", metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return lift, t.eventually(20*time.Second, func() error {
		u, err := quotas.Get(t.ctx, "examine", metav1.GetOptions{})
		if err == nil && len(u.Status.Hard) == 0 {
			err = errors.New("the quota is not in force")
		}
		return err
	})
}
