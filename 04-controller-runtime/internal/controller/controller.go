// Package controller is the core of the operator: it turns MyWebs into ConfigMaps, Deployments and Services. It is stage
// 9 in files: controller.go says what is watched, reconcile.go is the loop, children.go writes a child. What should be
// there is decided in package myweb. Package operator composes hardening around it.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Builder declares what enqueues a MyWeb: the MyWeb itself, the children that it owns, and objects of their kinds that
// have its name and may be in conflict with it. Several MyWebs are reconciled at once, but one MyWeb never twice.
//
// For has no GenerationChangedPredicate, which would save a reconcile after each write of a status: it would also hide
// a status that somebody else wrote.
func Builder(mgr ctrl.Manager) *builder.Builder {
	sameName := handler.EnqueueRequestsFromMapFunc(mapToMyWeb)
	return ctrl.NewControllerManagedBy(mgr).
		For(&webv1.MyWeb{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, sameName).
		Watches(&appsv1.Deployment{}, sameName).
		Watches(&corev1.Service{}, sameName)
}

// mapToMyWeb returns the MyWeb that an object has the name of. Owns enqueues only owners.
func mapToMyWeb(_ context.Context, obj client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
