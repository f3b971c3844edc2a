package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/conditions"
	"github.com/example/nginx-operator/internal/hardening"
)

// statusFor returns the status of an Nginx whose live Deployment and running pods are as given. problem is what
// kept its children from their desired state, nil when nothing did.
func statusFor(nginx *proxyv1alpha1.Nginx, deployment *appsv1.Deployment, nodes []string,
	problem *conditions.ConditionError, now time.Time) proxyv1alpha1.NginxStatus {
	status := *nginx.Status.DeepCopy()
	status.ObservedGeneration = nginx.Generation
	status.Selector = apilabels.SelectorFromSet(selector(nginx)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.Nodes = nodes
	conditions.Set(&status.Conditions, nginx.Generation, deployment, nginx.Spec.Count, problem, now)
	return status
}

// updateStatus writes the status if it differs from the live one, and records the transitions as events. When the
// write must wait, it returns how long. The write has the resourceVersion that was read: when the cache was outdated,
// the API server returns a conflict, and the next try reads a newer version.
func (r *NginxReconciler) updateStatus(ctx context.Context, nginx *proxyv1alpha1.Nginx, deployment *appsv1.Deployment,
	nodes []string, problem *conditions.ConditionError) (requeueAfter time.Duration, err error) {
	now, memory := r.Children.Clock.Now(), r.Children.Memory.Of(nginx)
	live := nginx.Status
	falsified := hardening.RestoreStatus(memory, &nginx.Status)
	old, status := nginx.Status, statusFor(nginx, deployment, nodes, problem, now)
	if equality.Semantic.DeepEqual(live, status) {
		memory.SetStatus(status)
		return 0, nil
	}
	delay := statusWriteDelay(old, status, deployment)
	if falsified {
		delay = memory.DriftDelay(now)
	}
	if delay == 0 {
		delay = r.statusWrites.take(client.ObjectKeyFromObject(nginx), now)
	}
	if delay > 0 {
		return delay, nil
	}
	nginx.Status = status
	if err := r.Status().Update(ctx, nginx, fieldOwner); err != nil {
		if !apierrors.IsConflict(err) {
			memory.SetStatus(nil) // the write may have succeeded
		}
		return 0, client.IgnoreNotFound(fmt.Errorf("update status of Nginx %s: %w", client.ObjectKeyFromObject(nginx), err))
	}
	memory.SetStatus(*nginx.Status.DeepCopy()) // as it is stored: times are cut to seconds
	if falsified {
		memory.DriftCorrected(now)
	}
	for _, e := range conditions.Events(old.Conditions, status.Conditions) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(nginx, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
	}
	return 0, nil
}

// statusWriteDelay returns how long the write of a status can wait, 0 for not at all: a Deployment that somebody
// touched waits for its controller, except that other pods run, which the pods report themselves.
func statusWriteDelay(old, status proxyv1alpha1.NginxStatus, deployment *appsv1.Deployment) time.Duration {
	if !slices.Equal(old.Nodes, status.Nodes) {
		return 0
	}
	sameGeneration := old.ObservedGeneration == status.ObservedGeneration
	return hardening.TouchedDelay(sameGeneration, old.Conditions, status.Conditions, deployment)
}
