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

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// statusFor returns the status of a Memcached with this Deployment. problem kept its children from their desired
// state; it is nil without a problem.
func statusFor(m *cachev1alpha1.Memcached, deployment *appsv1.Deployment, problem *owned.ConditionError,
	now time.Time) cachev1alpha1.MemcachedStatus {
	status := *m.Status.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.Selector = apilabels.SelectorFromSet(selector(m)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	owned.SetConditions(&status.Conditions, m.Generation, deployment, size(m), problem, now)
	return status
}

// updateStatus writes the status if it differs from the live one, and records the transitions as events. It returns
// when to reconcile again, because a write or a retry must wait. The write has the resourceVersion of the cached object: when the cache was outdated, the API server returns a conflict, and the
// next try reads a newer version.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, m *cachev1alpha1.Memcached,
	deployment *appsv1.Deployment, blocked *owned.ConditionError) (ctrl.Result, error) {
	retry := ctrl.Result{RequeueAfter: ptr.Deref(blocked, owned.ConditionError{}).RetryAfter}
	old, now := m.Status, r.Now()
	m.Status = statusFor(m, deployment, blocked, now)
	if equality.Semantic.DeepEqual(old, m.Status) {
		return retry, nil
	}
	if wait := owned.StatusDelay(old.Conditions, m.Status.Conditions, deployment, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err := r.Status().Update(ctx, m, FieldOwner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("update status of Memcached %s: %w", client.ObjectKeyFromObject(m), err))
	}
	for _, e := range owned.Events(old.Conditions, m.Status.Conditions) {
		log.FromContext(ctx).Info("Recorded event", "reason", e.Reason, "note", e.Note)
		r.Events.Eventf(m, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
	}
	return retry, nil
}
