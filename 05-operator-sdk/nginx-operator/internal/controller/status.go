package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// statusFor returns the status of an Nginx with this live Deployment and these running pods. problem kept its
// children from their desired state; it is nil without a problem.
func statusFor(nginx *proxyv1alpha1.Nginx, deployment *appsv1.Deployment, nodes []string,
	problem *owned.ConditionError, now time.Time) proxyv1alpha1.NginxStatus {
	status := *nginx.Status.DeepCopy()
	status.ObservedGeneration = nginx.Generation
	status.Selector = apilabels.SelectorFromSet(selector(nginx)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.Nodes = nodes
	owned.SetConditions(&status.Conditions, nginx.Generation, deployment, nginx.Spec.Count, problem, now)
	return status
}

// updateStatus writes the status if it differs from the live one, and records the transitions as events. The write has
// the resourceVersion of the cached object: when the cache was outdated, the API server returns a conflict, and the
// next try reads a newer version.
func (r *NginxReconciler) updateStatus(ctx context.Context, nginx *proxyv1alpha1.Nginx, deployment *appsv1.Deployment,
	nodes []string, problem error) error {
	old := nginx.Status
	nginx.Status = statusFor(nginx, deployment, nodes, owned.AsCondition(problem), time.Now())
	if equality.Semantic.DeepEqual(old, nginx.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, nginx, FieldOwner); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("update status of Nginx %s: %w", client.ObjectKeyFromObject(nginx), err))
	}
	for _, e := range owned.Events(old.Conditions, nginx.Status.Conditions) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(nginx, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
	}
	return nil
}

// Conditions returns the conditions of a Nginx.
func Conditions(obj client.Object) []metav1.Condition {
	return obj.(*proxyv1alpha1.Nginx).Status.Conditions
}
