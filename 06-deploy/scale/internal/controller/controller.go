// Package controller is the core of the operator, stage 9 in files: controller.go declares the watches, reconcile.go is
// the loop. Package operator composes hardening around the core.
package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// The operator's permissions, from which controller-gen generates config/rbac: the verbs that it uses, and delete, which
// OpenShift requires of a user who sets an owner reference on an existing object (OwnerReferencesPermissionEnforcement).
//
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs,verbs=list;watch
// +kubebuilder:rbac:groups=operator.k8s-summit.org,resources=mywebs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Builder declares what enqueues a MyWeb: the MyWeb itself, the children that it owns, and objects of their kinds that
// have its name and may be in conflict with it. Several MyWebs are reconciled at once, but never the same MyWeb twice.
//
// For has no GenerationChangedPredicate. It would save a reconcile after each write of a status, but it would also hide
// a status that another client wrote.
func Builder(mgr ctrl.Manager) *builder.Builder {
	sameName := handler.EnqueueRequestsFromMapFunc(owned.MapByName(mgr.GetCache(), &webv1.MyWeb{}))
	return ctrl.NewControllerManagedBy(mgr).
		For(&webv1.MyWeb{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, sameName).
		Watches(&appsv1.Deployment{}, sameName).
		Watches(&corev1.Service{}, sameName)
}
