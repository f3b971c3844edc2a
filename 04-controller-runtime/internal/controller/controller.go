// Package controller turns MyWebs into ConfigMaps, Deployments and Services.
package controller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// What the operator may do: exactly the verbs that it uses. controller-gen makes config/rbac of it.
//
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs,verbs=list;watch
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch

// SetupWithManager adds the reconciler to a manager. At most workers MyWebs are handled at once, and one
// MyWeb never twice at once.
//
// Children are watched by name, not by owner: a child has the name of its MyWeb, so one rule tells of
// children that changed, of obstacles that came and of obstacles that went. MyWebs are watched for
// changes of their spec only; the operator's own status writes do not wake it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("myweb").
		For(&webv1.MyWeb{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   time.Minute, // a watch that hangs must not hold a worker for ever
		}).
		Complete(r)
}

// sameName asks for the MyWeb that has the name of an object. When there is none, Reconcile finds that
// out in the cache.
func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
