// Package controller turns MyWebs into ConfigMaps, Deployments and Services, with controller-runtime.
//
// A manager brings the cache, the client, the work queue, the workers and the lease. The core is in
// controller.go (what is watched), reconcile.go (the loop) and apply.go (how a child is written); what
// should be there is decided in package myweb. The other files are hardening: each names in its first
// comment the check that demands it.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// What the operator may do: exactly the verbs that it uses, and delete. controller-gen makes config/rbac of it.
// The operator never sends delete. But an object with an owner reference is deleted with its owner, so the admission
// plugin OwnerReferencesPermissionEnforcement, which OpenShift enables, asks for delete of a user who sets the
// reference on an existing object: when a child has lost it, or is handed over.
//
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs,verbs=list;watch
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// SetupWithManager adds the reconciler to a manager whose cache has CacheOptions. Several MyWebs are
// reconciled at once, but one MyWeb never twice at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := startInformers(context.Background(), mgr.GetCache()); err != nil {
		return err
	}
	return r.builder(mgr).Complete(finishInFlight(r))
}

// builder declares what enqueues a MyWeb: the MyWeb itself; the children that it owns; and the objects that
// it does not own, but that may be in conflict with it.
//
// For has no GenerationChangedPredicate, which would save a reconcile after each write of a status: it would
// also hide a status that somebody else falsified (check fault/21-status-falsified).
//
// What is not declared here stays as controller-runtime has it. A panic becomes an error, so one MyWeb that
// causes it does not take the others down. The queue is a priority queue: what the first list brings waits
// behind what changes now, so after a restart a user's edit does not wait for thousands of MyWebs.
func (r *Reconciler) builder(mgr ctrl.Manager) *builder.Builder {
	conflicts := handler.EnqueueRequestsFromMapFunc(r.mapToMyWebs)
	return ctrl.NewControllerManagedBy(mgr).
		Named("myweb").
		For(&webv1.MyWeb{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&webv1.MyWeb{}, conflicts).
		Watches(&corev1.ConfigMap{}, conflicts).
		Watches(&appsv1.Deployment{}, conflicts).
		Watches(&corev1.Service{}, conflicts).
		WithOptions(controller.Options{
			RateLimiter:           newBackoff(),
			ReconciliationTimeout: reconcileTimeout,
		})
}
