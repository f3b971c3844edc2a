package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/conditions"
	"github.com/example/memcached-operator/internal/hardening"
)

// statusFor returns the status of a Memcached whose Deployment is as given. problem is what kept its children
// from their desired state, nil when nothing did.
func statusFor(m *cachev1alpha1.Memcached, deployment *appsv1.Deployment, problem *conditions.ConditionError,
	now time.Time) cachev1alpha1.MemcachedStatus {
	status := *m.Status.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.Selector = apilabels.SelectorFromSet(selector(m)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	conditions.Set(&status.Conditions, m.Generation, deployment, size(m), problem, now)
	return status
}

// updateStatus writes the status if it differs from the live one, and records the transitions as events. The write
// has the resourceVersion that was read: when the cache was outdated, the API server returns a conflict, and the next
// try reads a newer version.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, m *cachev1alpha1.Memcached,
	deployment *appsv1.Deployment, problem *conditions.ConditionError) (requeueAfter time.Duration, err error) {
	now, memory := r.Children.Clock.Now(), r.Children.Memory.Of(m)
	live := m.Status
	falsified := hardening.RestoreStatus(memory, &m.Status)
	old, status := m.Status, statusFor(m, deployment, problem, now)
	if equality.Semantic.DeepEqual(live, status) {
		memory.SetStatus(status)
		return 0, nil
	}
	delay := statusWriteDelay(old, status, deployment, now)
	if falsified {
		delay = memory.DriftDelay(now)
	}
	if delay > 0 {
		return delay, nil
	}
	m.Status = status
	if err := r.Status().Update(ctx, m, fieldOwner); err != nil {
		if !apierrors.IsConflict(err) {
			memory.SetStatus(nil) // the write may have succeeded
		}
		return 0, client.IgnoreNotFound(fmt.Errorf("update status of Memcached %s: %w", client.ObjectKeyFromObject(m), err))
	}
	memory.SetStatus(*m.Status.DeepCopy()) // as it is stored: times are cut to seconds
	if falsified {
		memory.DriftCorrected(now)
	}
	for _, e := range conditions.Events(old.Conditions, status.Conditions) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(m, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
	}
	return 0, nil
}

// statusWriteDelay returns how long the write of a status can wait, 0 for no delay. Steps of a rollout that makes
// progress wait. All other changes are reported at once, above all a problem and its end.
func statusWriteDelay(old, status cachev1alpha1.MemcachedStatus, deployment *appsv1.Deployment,
	now time.Time) time.Duration {
	sameGeneration := old.ObservedGeneration == status.ObservedGeneration
	if delay := hardening.TouchedDelay(sameGeneration, old.Conditions, status.Conditions, deployment); delay > 0 {
		return delay
	}
	if !sameGeneration || old.Selector != status.Selector {
		return 0
	}
	return hardening.RolloutDelay(old.Conditions, status.Conditions, deployment, now)
}
