package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A strategy is what OLM makes by itself when it installs the operator: Deployments, service accounts with
// their permissions, webhooks with their Services and certificates.
type strategy struct {
	deployments  []appsv1.Deployment
	roles        []role
	bindings     []rbacv1.ClusterRoleBinding // RoleBindings too: they have the same fields
	services     []unstructured.Unstructured
	descriptions []v1alpha1.WebhookDescription
	served       []string // names of the Services of webhooks
}

// A role is a Role or a ClusterRole.
type role struct {
	rbacv1.ClusterRole
	object unstructured.Unstructured
	bound  []string // service accounts
}

// take reports whether an object belongs to the strategy. Of roles and Services bind decides later.
func (s *strategy) take(kind string, object unstructured.Unstructured) (bool, error) {
	switch kind {
	case "Deployment":
		var d appsv1.Deployment
		err := into(object, &d)
		s.deployments = append(s.deployments, d)
		return true, err
	case "Role", "ClusterRole":
		r := role{object: object}
		err := into(object, &r.ClusterRole)
		s.roles = append(s.roles, r)
		return true, err
	case "RoleBinding", "ClusterRoleBinding":
		var b rbacv1.ClusterRoleBinding
		err := into(object, &b)
		s.bindings = append(s.bindings, b)
		return true, err
	case "Service":
		s.services = append(s.services, object)
		return true, nil
	case "ValidatingWebhookConfiguration":
		var c admissionv1.ValidatingWebhookConfiguration
		err := into(object, &c)
		for _, w := range c.Webhooks {
			s.webhook(v1alpha1.ValidatingAdmissionWebhook, admissionv1.MutatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
				MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
				TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
				MatchConditions: w.MatchConditions})
		}
		return true, err
	case "MutatingWebhookConfiguration":
		var c admissionv1.MutatingWebhookConfiguration
		err := into(object, &c)
		for _, w := range c.Webhooks {
			s.webhook(v1alpha1.MutatingAdmissionWebhook, w)
		}
		return true, err
	}
	return false, nil
}

func (s *strategy) webhook(kind v1alpha1.WebhookAdmissionType, w admissionv1.MutatingWebhook) {
	if len(w.MatchConditions) > 0 {
		fmt.Fprintf(os.Stderr,
			"note: OLM has no place for the matchConditions of webhook %s: it will be asked more often\n", w.Name)
	}
	d := v1alpha1.WebhookDescription{GenerateName: w.Name, Type: kind, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
		MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
		ReinvocationPolicy: w.ReinvocationPolicy, ContainerPort: 443}
	if service := w.ClientConfig.Service; service != nil {
		d.WebhookPath = service.Path
		s.served = append(s.served, service.Name)
	}
	s.descriptions = append(s.descriptions, d)
}

// bind finds out whose the roles are. What no service account of a Deployment has is for people, and lies
// beside the ClusterServiceVersion, as do Services that no webhook is called by.
func (s *strategy) bind(b *bundle) error {
	for _, binding := range s.bindings {
		i := slices.IndexFunc(s.roles, func(r role) bool {
			return r.Name == binding.RoleRef.Name && r.object.GetKind() == binding.RoleRef.Kind
		})
		if i < 0 {
			return fmt.Errorf("the binding %s is for %s %s, which is not there", binding.Name, binding.RoleRef.Kind,
				binding.RoleRef.Name)
		}
		for _, subject := range binding.Subjects {
			s.roles[i].bound = append(s.roles[i].bound, subject.Name)
		}
	}
	for _, r := range s.roles {
		if len(r.bound) == 0 {
			b.beside = append(b.beside, r.object)
		}
	}
	for _, service := range s.services {
		if !slices.Contains(s.served, service.GetName()) {
			b.beside = append(b.beside, service)
			continue
		}
		var typed corev1.Service
		if err := into(service, &typed); err != nil {
			return err
		}
		for i := range s.descriptions {
			s.descriptions[i].TargetPort = &typed.Spec.Ports[0].TargetPort
		}
	}
	return nil
}

// fill puts the strategy into a ClusterServiceVersion.
func (s *strategy) fill(csv *v1alpha1.ClusterServiceVersion, image string) error {
	details := v1alpha1.StrategyDetailsDeployment{}
	for _, d := range s.deployments {
		d.Spec.Template.Spec.Containers[0].Image = image
		details.DeploymentSpecs = append(details.DeploymentSpecs,
			v1alpha1.StrategyDeploymentSpec{Name: d.Name, Spec: d.Spec, Label: d.Labels})
	}
	if len(details.DeploymentSpecs) != 1 {
		return fmt.Errorf("there are %d Deployments, want the operator's alone", len(details.DeploymentSpecs))
	}
	for _, r := range s.roles {
		for _, account := range r.bound {
			permission := v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: r.Rules}
			if r.object.GetKind() == "ClusterRole" {
				details.ClusterPermissions = merged(details.ClusterPermissions, permission)
			} else {
				details.Permissions = merged(details.Permissions, permission)
			}
		}
	}
	csv.Spec.InstallStrategy = v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: details}
	csv.Spec.WebhookDefinitions = nil
	for _, d := range s.descriptions {
		d.DeploymentName = details.DeploymentSpecs[0].Name
		csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, d)
	}
	return nil
}

// merged adds rules to those that a service account has already.
func merged(all []v1alpha1.StrategyDeploymentPermissions,
	more v1alpha1.StrategyDeploymentPermissions) []v1alpha1.StrategyDeploymentPermissions {
	for i := range all {
		if all[i].ServiceAccountName == more.ServiceAccountName {
			all[i].Rules = append(all[i].Rules, more.Rules...)
			return all
		}
	}
	return append(all, more)
}
