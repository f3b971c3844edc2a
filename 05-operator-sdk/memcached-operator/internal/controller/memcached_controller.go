// Package controller turns Memcacheds into Deployments and Services.
//
// This file has the permissions, Reconcile and the watches. desired.go and config.go compute the desired children,
// status.go the status. mapping.go maps an event to Memcacheds, cache.go says what the cache keeps.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/conditions"
	"github.com/example/memcached-operator/internal/hardening"
	"github.com/example/memcached-operator/internal/owned"
)

// The permissions of the operator: exactly the verbs that it uses, and delete. controller-gen turns them into
// config/rbac/role.yaml. There is no get: reads come from the cache, which lists and watches. Events are only created:
// each follows a status write, so no two are about the same version of a Memcached, and none is a repetition to be
// counted.
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

// MemcachedReconciler keeps the children and the status of all Memcacheds in their desired state. Make it with New.
type MemcachedReconciler struct {
	hardening.Client
	// Children are what Memcacheds own.
	Children owned.Applier
	// Events receives what changed.
	Events events.EventRecorder
	// Image is for Memcacheds that name none.
	Image string

	backoff hardening.Backoff
}

// New returns a reconciler that uses the image for Memcacheds without an image. The client should read from a cache
// that contains the client's own writes.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, image string) *MemcachedReconciler {
	hardened := hardening.Client{Client: c, Live: live}
	return &MemcachedReconciler{
		Client: hardened,
		Children: owned.Applier{Client: hardened, Owner: owned.Kind{GroupVersionKind: Kind}, FieldOwner: fieldOwner,
			Clock: clock.RealClock{}, Memory: &hardening.Memory{}},
		Events:  recorder,
		Image:   image,
		backoff: hardening.NewBackoff(),
	}
}

// Reconcile brings the children of one Memcached to their desired state, and its status to what it observed. It
// reads from the cache, writes what differs, and never asks which event it was called for.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	err := r.Get(ctx, req.NamespacedName, memcached)
	if apierrors.IsNotFound(err) {
		r.Children.Memory.Forget(req.NamespacedName)
		return hardening.Result(r.backoff, req, 0, nil)
	}
	if err != nil || !memcached.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return hardening.Result(r.backoff, req, 0, err)
	}
	config, err := r.config(ctx, memcached)
	deployment, service := desired(memcached, config, r.Image)
	driftDelay, err := r.reconcileChildren(ctx, memcached, err, deployment, service)
	problem := conditions.AsError(err)
	if err != nil && problem == nil {
		return hardening.Result(r.backoff, req, 0, err)
	}
	statusDelay, updateErr := r.updateStatus(ctx, memcached, conditions.DeploymentOf(deployment.Live), problem)
	if updateErr != nil {
		err = updateErr
	}
	return hardening.Result(r.backoff, req, hardening.Sooner(driftDelay, statusDelay), err)
}

// reconcileChildren applies the children. When the configuration cannot be read, it only observes them: running pods
// are not changed, and the status still reports them.
func (r *MemcachedReconciler) reconcileChildren(ctx context.Context, m *cachev1alpha1.Memcached, configErr error,
	children ...*owned.Child) (driftDelay time.Duration, err error) {
	if configErr == nil {
		return r.Children.Apply(ctx, m, children...)
	}
	if err := r.Children.Observe(ctx, m, children...); err != nil && conditions.AsError(err) == nil {
		return 0, err
	}
	return 0, configErr
}

// config reads the ConfigMap that a Memcached names. It returns a ConditionError when there is none, or when
// memcached would not accept its values: a watch reports when that changes.
func (r *MemcachedReconciler) config(ctx context.Context, m *cachev1alpha1.Memcached) (Config, error) {
	name := configName(m)
	if name == "" {
		return DefaultConfig, nil
	}
	key, found := client.ObjectKey{Namespace: m.Namespace, Name: name}, &corev1.ConfigMap{}
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return DefaultConfig, conditions.Errorf(cachev1alpha1.ReasonConfigNotFound,
			"ConfigMap %s does not exist: create it, or remove spec.configRef", name)
	}
	if err != nil {
		return DefaultConfig, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	config, err := ParseConfig(found.Data)
	if err != nil {
		return DefaultConfig, conditions.Errorf(cachev1alpha1.ReasonInvalidConfig, "ConfigMap %s: %s", name, err)
	}
	return config, nil
}

// SetupWithManager adds the reconciler to a manager. At most workers Memcacheds are handled at once, and one
// Memcached never twice at once.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &cachev1alpha1.Memcached{},
		configRefField, indexConfigRef)
	if err != nil {
		return err
	}
	return r.builder(mgr, workers).Complete(hardening.FinishInFlight(r))
}

// builder says which events enqueue a Memcached, and how many reconciles run at once.
//
// For: any change of a Memcached. The operator's own status writes enqueue it too, which costs a read from the cache.
// So does a status that another client wrote, which is corrected.
//
// Owns: a child enqueues the Memcached that controls it, now or before the change. A predicate that is an event
// filter of the whole controller would hide the status of Deployments, and no Memcached would ever be available.
//
// Watches: a Deployment or a Service that no Memcached controls can have the name of a child, and Owns does not
// see that it is created or deleted. A ConfigMap enqueues the Memcacheds that name it. A second watch of one kind
// costs no request: all of them use the same cache.
func (r *MemcachedReconciler) builder(mgr ctrl.Manager, workers int) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named("memcached").
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(mapByName), builder.WithPredicates(unmanaged)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(mapByName), builder.WithPredicates(unmanaged)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.mapByConfigRef),
			builder.WithPredicates(dataChanged)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             hardening.NewBackoff(),
			ReconciliationTimeout:   hardening.ReconcileTimeout,
		})
}
