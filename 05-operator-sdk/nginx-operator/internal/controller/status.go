package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
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

// updateStatus writes the status if it differs from the live one, and records the transitions as events. It returns
// when to reconcile again, because a write or a retry must wait. The write has the resourceVersion of the cached object: when the cache was outdated, the API server returns a conflict, and the
// next try reads a newer version.
func (r *NginxReconciler) updateStatus(ctx context.Context, nginx *proxyv1alpha1.Nginx, deployment *appsv1.Deployment,
	nodes []string, blocked *owned.ConditionError) (ctrl.Result, error) {
	retry := ctrl.Result{RequeueAfter: ptr.Deref(blocked, owned.ConditionError{}).RetryAfter}
	old, now := nginx.Status, r.Now()
	nginx.Status = statusFor(nginx, deployment, nodes, blocked, now)
	if equality.Semantic.DeepEqual(old, nginx.Status) {
		return retry, nil
	}
	if wait := owned.StatusDelay(old.Conditions, nginx.Status.Conditions, deployment, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if wait := r.Pace.delay(nginx.UID, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err := r.Status().Update(ctx, nginx, FieldOwner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("update status of Nginx %s: %w", client.ObjectKeyFromObject(nginx), err))
	}
	for _, e := range owned.Events(old.Conditions, nginx.Status.Conditions) {
		log.FromContext(ctx).Info("Recorded event", "reason", e.Reason, "note", e.Note)
		r.Events.Eventf(nginx, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
	}
	return retry, nil
}
