package owned

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// The owners in these tests are PodDisruptionBudgets, which every API server knows: to this package one kind
// is like the other.

func keeper() *Keeper {
	return New(nil, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "keeper")
}

func budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site", UID: "u-1"}}
}

func replicas(n int32) func(*appsv1ac.DeploymentApplyConfiguration) {
	return func(d *appsv1ac.DeploymentApplyConfiguration) { d.Spec.WithReplicas(n) }
}

// pods returns a Deployment that shall be, changed.
func pods(change ...func(*appsv1ac.DeploymentApplyConfiguration)) *Child {
	labels := map[string]string{"app": "site"}
	d := appsv1ac.Deployment("site", "default").WithLabels(labels).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(1).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
			corev1ac.Container().WithName("c").WithImage("i").WithArgs("-a").
				WithPorts(corev1ac.ContainerPort().WithName("p").WithContainerPort(80).WithProtocol("TCP"))))))
	for _, f := range change {
		f(d)
	}
	return Deployment(d)
}
