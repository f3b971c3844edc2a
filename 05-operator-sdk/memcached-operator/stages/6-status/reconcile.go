// Package memcached is the smallest controller of Memcacheds.
package memcached

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// Reconciler brings a Memcached to its desired state.
type Reconciler struct{ client.Client }

// SetupWithManager registers the watches that call Reconcile.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&cachev1alpha1.Memcached{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile is called with the name of a Memcached that may have changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		desire(m, deployment)
		return controllerutil.SetControllerReference(m, deployment, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("write Deployment %s: %w", m.Name, err)
	}
	if old := m.Status.DeepCopy(); !equality.Semantic.DeepEqual(*old, setStatus(m, deployment)) {
		if err := r.Status().Update(ctx, m); err != nil {
			return ctrl.Result{}, fmt.Errorf("update status of Memcached %s: %w", m.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

// setStatus sets the status from that of the Deployment, and returns it. A Deployment whose controller has not seen the
// latest generation reports about an older generation. During a rollout, pods of both generations are ready.
func setStatus(m *cachev1alpha1.Memcached, d *appsv1.Deployment) cachev1alpha1.MemcachedStatus {
	s := d.Status
	available := metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "PodsNotReady",
		Message: fmt.Sprintf("%d pods, %d of the current generation, %d ready", s.Replicas, s.UpdatedReplicas,
			s.ReadyReplicas),
		ObservedGeneration: m.Generation}
	if s.ObservedGeneration == d.Generation && s.UpdatedReplicas >= m.Spec.Size && s.ReadyReplicas == s.Replicas {
		available.Status, available.Reason = metav1.ConditionTrue, "PodsReady"
	}
	meta.SetStatusCondition(&m.Status.Conditions, available)
	m.Status.ReadyReplicas = s.ReadyReplicas
	return m.Status
}

// desire sets the desired fields of a Memcached's Deployment.
func desire(m *cachev1alpha1.Memcached, d *appsv1.Deployment) {
	labels := map[string]string{"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": m.Name}
	d.Spec.Replicas = new(m.Spec.Size)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	if len(d.Spec.Template.Spec.Containers) == 0 {
		d.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
	}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Name, container.Image = "memcached", m.Spec.Image
	container.Ports = []corev1.ContainerPort{
		{Name: "memcached", ContainerPort: m.Spec.ContainerPort, Protocol: corev1.ProtocolTCP}}
}
