// Package controller turns Memcacheds into Deployments and Services.
//
// This file has the permissions, Reconcile and the watches. desired.go and config.go compute the desired children,
// status.go the status. mapping.go maps an event to Memcacheds, cache.go trims the objects in the cache.
// This is the core: package operator composes hardening around it.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// The permissions of the operator: exactly the verbs that it uses, and delete. controller-gen turns them into
// config/rbac/role.yaml. The operator needs no get, because it reads from the cache, which lists and watches. For
// events it needs only create: each event follows a status write, so no two events are about the same version of a
// Memcached, and the recorder never updates an event to count a repetition.
// The operator never sends delete. But an object with an owner reference is deleted with its owner, so the admission
// plugin OwnerReferencesPermissionEnforcement, which OpenShift enables, asks for delete of a user who sets the
// reference on an existing object: when a child has lost it, or is handed over.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Kind is the kind that this controller reconciles.
var Kind = cachev1alpha1.GroupVersion.WithKind("Memcached")

// Owner identifies the owner of a child.
var Owner = owned.Kind{GroupVersionKind: Kind}

// MemcachedReconciler keeps the children and the status of all Memcacheds in their desired state.
type MemcachedReconciler struct {
	// Client reads from a cache, and writes to the API server.
	client.Client
	// Applier writes the children.
	Applier owned.Applier
	// Events records the transitions of conditions.
	Events events.EventRecorder
	// Now returns the time of conditions.
	Now func() time.Time
	// Image is for Memcacheds without an image.
	Image string
}

// Reconcile brings the children of one Memcached to their desired state, and reports the observed state in its status.
// It reads from the cache, writes only differences, and does not know which event caused the call. reconcile.AsReconciler reads the Memcached, and
// does not call Reconcile when the Memcached is gone.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, memcached *cachev1alpha1.Memcached) (ctrl.Result, error) {
	if !memcached.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	config, problem := r.config(ctx, memcached)
	deployment, service := desired(memcached, config, r.Image)
	problem = owned.Join(Owner.Observe(ctx, r, memcached, deployment, service), problem)
	if problem == nil { // without its configuration running pods are not changed, and the status still reports them
		problem = Owner.Apply(ctx, r.Applier, deployment, service)
	}
	blocked := owned.AsCondition(problem)
	if problem != nil && blocked == nil {
		return ctrl.Result{}, problem // no condition reports it: the caller tries again with backoff
	}
	return r.updateStatus(ctx, memcached, deployment.Live.(*appsv1.Deployment), blocked)
}

// config reads the ConfigMap that a Memcached names. It returns a ConditionError when the ConfigMap does not exist, or
// when memcached would not accept its values; a watch reports the fix.
func (r *MemcachedReconciler) config(ctx context.Context, m *cachev1alpha1.Memcached) (Config, error) {
	name := configName(m)
	if name == "" {
		return DefaultConfig, nil
	}
	key, found := client.ObjectKey{Namespace: m.Namespace, Name: name}, &corev1.ConfigMap{}
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return DefaultConfig, owned.Errorf(cachev1alpha1.ReasonConfigNotFound,
			"ConfigMap %s does not exist: create it, or remove spec.configRef", name)
	}
	if err != nil {
		return DefaultConfig, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	config, err := ParseConfig(found.Data)
	if err != nil {
		return DefaultConfig, owned.Errorf(cachev1alpha1.ReasonInvalidConfig, "ConfigMap %s: %s", name, err)
	}
	return config, nil
}

// SetupWithManager adds a reconciler of Memcacheds to a manager.
func SetupWithManager(mgr ctrl.Manager, memcacheds reconcile.Reconciler, options controller.Options) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &cachev1alpha1.Memcached{},
		configRefField, indexConfigRef)
	if err != nil {
		return err
	}
	return watches(mgr).WithOptions(options).Complete(memcacheds)
}

// watches registers the events that enqueue a Memcached.
//
// For: any change of a Memcached. The operator's own status writes enqueue it too, which costs a read from the cache.
// So does a status that another client wrote, which is corrected.
//
// Owns: a child enqueues the Memcached that controls it, now or before the change. An event filter for the whole
// controller would hide the status of Deployments, and no Memcached would ever be available.
//
// Watches: a Deployment or a Service that no Memcached controls can have the name of a child, and Owns ignores it. A
// ConfigMap enqueues the Memcacheds that name it. A second watch of one kind costs no request: all of them use the same
// cache.
func watches(mgr ctrl.Manager) *builder.Builder {
	byName := handler.EnqueueRequestsFromMapFunc(owned.MapByName(mgr.GetCache(), &cachev1alpha1.Memcached{}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("memcached").
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, byName).
		Watches(&corev1.Service{}, byName).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(mapByConfigRef(mgr.GetCache())),
			builder.WithPredicates(dataChanged))
}
