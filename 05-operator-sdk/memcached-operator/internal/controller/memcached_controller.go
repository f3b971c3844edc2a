// Package controller turns Memcacheds into Deployments and Services.
//
// This file says what the operator may do, what wakes the loop, and the loop itself. desired.go and config.go
// say what a Memcached shall own, status.go what is told of it, watches.go who is woken by what and what the
// cache keeps. How children are kept as they should be is in internal/owned.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// What the operator may do: exactly the verbs that it uses. controller-gen makes config/rbac/role.yaml of
// it. There is no get: what is read comes from the cache, which lists and watches. There is no delete: the
// garbage collector removes what a Memcached owned. Events are only created: each follows a status write, so no
// two are of the same version of a Memcached, and none is counted up.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Kind is what this controller serves.
var Kind = cachev1alpha1.GroupVersion.WithKind("Memcached")

// MemcachedReconciler keeps the children and the status of all Memcacheds true. Make it with New.
type MemcachedReconciler struct {
	// Keeper writes the children, and reads from the manager's cache.
	*owned.Keeper
	// Events receives what changed.
	Events events.EventRecorder
	// Clock gives the times of conditions.
	Clock clock.PassiveClock
	// Image is for Memcacheds that name none.
	Image string
}

// New returns a reconciler that gives the image to Memcacheds that name none.
func New(c client.Client, recorder events.EventRecorder, image string) *MemcachedReconciler {
	return &MemcachedReconciler{
		Keeper: owned.New(c, Kind, fieldOwner),
		Events: recorder,
		Clock:  clock.RealClock{},
		Image:  image,
	}
}

// Reconcile makes the children of one Memcached what its spec says, and its status what they are. It reads
// what is there from the cache, writes what differs, and never asks which event woke it. End says in which
// of four ways it returns.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	err := r.Get(ctx, req.NamespacedName, memcached)
	if apierrors.IsNotFound(err) {
		r.Forget(req)
		return ctrl.Result{}, nil
	}
	if err != nil || !memcached.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return r.End(req, 0, err)
	}
	children, err := r.keep(ctx, memcached)
	what, told := errors.AsType[owned.Obstacle](err)
	if err != nil && !told {
		return r.End(req, 0, err)
	}
	var obstacle *owned.Obstacle
	if told {
		obstacle = &what
	}
	again, err := r.tell(ctx, memcached, r.Pods(memcached, children...), obstacle)
	if err == nil && what.Unwatched {
		err = what
	}
	return r.End(req, again, err)
}

// keep makes the children of a Memcached what they shall be, and returns them as they are. Without its
// configuration nothing is written: pods that run go on as they are, and status still tells of them.
func (r *MemcachedReconciler) keep(ctx context.Context, m *cachev1alpha1.Memcached) ([]*owned.Child, error) {
	config, err := r.config(ctx, m)
	children := desired(m, config, r.Image)
	if err == nil {
		settled := m.Status.ObservedGeneration == m.Generation
		return children, r.Keep(ctx, m, settled, children...)
	}
	looked := r.Look(ctx, m, children...)
	if _, told := errors.AsType[owned.Obstacle](looked); looked != nil && !told {
		return nil, looked
	}
	return children, err
}

// config reads the ConfigMap that a Memcached names. It returns an Obstacle when there is none, or when
// memcached would not take what it says: a watch tells when that changes.
func (r *MemcachedReconciler) config(ctx context.Context, m *cachev1alpha1.Memcached) (Config, error) {
	name := configName(m)
	if name == "" {
		return DefaultConfig, nil
	}
	key, found := client.ObjectKey{Namespace: m.Namespace, Name: name}, &corev1.ConfigMap{}
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return DefaultConfig, owned.Obstacle{Reason: cachev1alpha1.ReasonConfigNotFound,
			Message: fmt.Sprintf("ConfigMap %s does not exist: create it, or remove spec.configRef", name)}
	}
	if err != nil {
		return DefaultConfig, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	config, err := ParseConfig(found.Data)
	if err != nil {
		return DefaultConfig, owned.Obstacle{Reason: cachev1alpha1.ReasonInvalidConfig,
			Message: fmt.Sprintf("ConfigMap %s: %s", name, err)}
	}
	return config, nil
}

// tell writes a status that differs from the one that was read, and records what changed by it. It names
// the version that it read: when the cache was behind, the API server refuses, and the next try sees more.
func (r *MemcachedReconciler) tell(ctx context.Context, m *cachev1alpha1.Memcached, pods *appsv1.Deployment, what *owned.Obstacle) (again time.Duration, err error) {
	now := r.Clock.Now()
	status, old := statusFor(m, pods, what, now), m.Status
	if equality.Semantic.DeepEqual(old, status) {
		return 0, nil
	}
	if wait := untold(old, status, pods, now); wait > 0 {
		return wait, nil
	}
	m.Status = status
	err = r.Status().Update(ctx, m, r.FieldOwner())
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("update status of Memcached %s: %w", client.ObjectKeyFromObject(m), err)
	}
	for _, e := range owned.Events(old.Conditions, status.Conditions) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(m, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return 0, nil
}

// SetupWithManager adds the reconciler to a manager. At most workers Memcacheds are handled at once, and one
// Memcached never twice at once.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &cachev1alpha1.Memcached{}, byConfig, namedConfig); err != nil {
		return err
	}
	return r.builder(mgr, workers).Complete(owned.Drained(r))
}

// builder says what wakes the loop, and how it is paced.
//
// For: Memcacheds wake it when their generation changes, that is their spec, so the status that the operator
// writes does not. The predicate stands with For alone: as an event filter of the whole controller it would
// hide the status of Deployments as well, and no Memcached would ever be available.
//
// Owns: children wake the Memcached that controls them, now or before the change.
//
// Watches, of what no Memcached controls: a Deployment or a Service that has the name of a child stands in
// its way, and Owns does not see it come or go; a ConfigMap concerns those that name it. A second watch of
// one kind costs no request: all of them read from the same cache.
func (r *MemcachedReconciler) builder(mgr ctrl.Manager, workers int) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named("memcached").
		For(&cachev1alpha1.Memcached{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(sameName), builder.WithPredicates(foreign)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(sameName), builder.WithPredicates(foreign)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.whoNames), builder.WithPredicates(dataChanged)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             owned.Pauses(),
			ReconciliationTimeout:   owned.Timeout,
		})
}
