// Package controller turns Nginxes into Deployments and Services, and tells which pods of theirs run.
//
// Children are kept by internal/owned. What is left to say is what wakes the loop and the loop itself
// (nginx_controller.go), what the caches keep (caches.go), what shall be there (desired.go), which pods
// are an Nginx's own (pods.go), what is told (status.go) and how often (pace.go).
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// What the operator may do: exactly the verbs that it uses. controller-gen makes config/rbac/role.yaml of it.
//
// +kubebuilder:rbac:groups=proxy.example.com,resources=nginxes,verbs=list;watch
// +kubebuilder:rbac:groups=proxy.example.com,resources=nginxes/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps;pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Kind is what this controller serves.
var Kind = proxyv1alpha1.GroupVersion.WithKind("Nginx")

// NginxReconciler keeps the children and the status of all Nginxes true. Make it with New.
type NginxReconciler struct {
	// Keeper keeps the children. Its client reads from the manager's cache.
	*owned.Keeper
	// PodReader reads pods and ReplicaSets, which have a cache of their own.
	PodReader client.Reader
	// Events receives what changed.
	Events events.EventRecorder
	// Image is for an Nginx that names none.
	Image string
	// Clock gives the times of conditions, and paces the writing of status.
	Clock clock.PassiveClock

	told pace
}

// New returns a reconciler that runs image where an Nginx names none. Before it can work it needs
// SetupWithManager, or a PodReader.
func New(c client.Client, recorder events.EventRecorder, image string) *NginxReconciler {
	return &NginxReconciler{
		Keeper: owned.New(c, Kind, fieldOwner),
		Events: recorder,
		Image:  image,
		Clock:  clock.RealClock{},
	}
}

// Reconcile makes the children of one Nginx what its spec says, and its status what they are. It reads
// what is there from the caches, writes what differs, and never asks which event woke it.
func (r *NginxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	nginx := &proxyv1alpha1.Nginx{}
	err := r.Get(ctx, req.NamespacedName, nginx)
	if apierrors.IsNotFound(err) {
		r.Forget(req)
		r.told.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil || !nginx.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return r.End(req, 0, err)
	}
	pods, err := r.keep(ctx, nginx)
	var what *owned.Obstacle
	if found, ok := errors.AsType[owned.Obstacle](err); ok {
		what = &found
	} else if err != nil {
		return r.End(req, 0, err)
	}
	nodes, err := r.nodes(ctx, pods)
	if err != nil {
		return r.End(req, 0, err)
	}
	again, err := r.tell(ctx, nginx, statusFor(nginx, pods, nodes, what, r.Clock.Now()), pods)
	if err == nil && what != nil && what.Unwatched {
		err = *what
	}
	result, err := r.End(req, again, err)
	if again > 0 { // the pauses of what is refused do not hold back what is true
		result.RequeueAfter = min(result.RequeueAfter, again)
	}
	return result, err
}

// keep makes the children what the spec says, and returns the Deployment as it is then, empty when there
// is none. While the content is missing nothing is changed: pods that serve something go on.
func (r *NginxReconciler) keep(ctx context.Context, nginx *proxyv1alpha1.Nginx) (*appsv1.Deployment, error) {
	hash, err := r.content(ctx, nginx)
	pods, service := owned.Deployment(desiredPods(nginx, r.Image, hash)), owned.Service(desiredService(nginx))
	if err == nil {
		settled := nginx.Status.ObservedGeneration == nginx.Generation
		err = r.Keep(ctx, nginx, settled, pods, service)
		return r.Pods(nginx, pods), err
	}
	live := &appsv1.Deployment{}
	switch problem := r.Get(ctx, client.ObjectKeyFromObject(nginx), live); {
	case problem == nil:
		pods.Live = live
	case !apierrors.IsNotFound(problem):
		return nil, problem
	}
	return r.Pods(nginx, pods), err
}

// content returns the hash of what an Nginx serves, empty when that is what the image has.
func (r *NginxReconciler) content(ctx context.Context, nginx *proxyv1alpha1.Nginx) (string, error) {
	if nginx.Spec.ContentRef == nil {
		return "", nil
	}
	key, content := client.ObjectKey{Namespace: nginx.Namespace, Name: nginx.Spec.ContentRef.Name}, &corev1.ConfigMap{}
	err := r.Get(ctx, key, content)
	if apierrors.IsNotFound(err) {
		return "", owned.Obstacle{Reason: proxyv1alpha1.ReasonContentNotFound,
			Message: fmt.Sprintf("ConfigMap %s of spec.contentRef does not exist: create it; until then nothing is changed", key.Name)}
	}
	if err != nil {
		return "", fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	return content.Data[contentHash], nil // the cache keeps nothing else
}

// tell writes a status that differs from the one that was read, and records what changed by it. When it
// is not the time for it, it says how long to wait. It names the version that it read: when the cache was
// behind, the API server refuses, and the next try sees more.
func (r *NginxReconciler) tell(ctx context.Context, nginx *proxyv1alpha1.Nginx, status proxyv1alpha1.NginxStatus, pods *appsv1.Deployment) (again time.Duration, err error) {
	old := nginx.Status
	if equality.Semantic.DeepEqual(old, status) {
		return 0, nil
	}
	if wait := untold(old, status, pods); wait > 0 {
		return wait, nil
	}
	if wait := r.told.take(client.ObjectKeyFromObject(nginx), r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	nginx.Status = status
	err = r.Status().Update(ctx, nginx, fieldOwner)
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("update status of Nginx %s/%s: %w", nginx.Namespace, nginx.Name, err)
	}
	for _, e := range owned.Events(old.Conditions, status.Conditions) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(nginx, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return 0, nil
}

// SetupWithManager adds the reconciler to a manager whose cache has Trim, and gives it a cache of the pods
// in the named namespaces, or in all. At most workers Nginxes are handled at once, and one never twice at
// once.
func (r *NginxReconciler) SetupWithManager(mgr ctrl.Manager, workers int, namespaces ...string) error {
	pods, err := newPodCache(mgr, namespaces)
	if err != nil {
		return err
	}
	r.PodReader = pods
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &proxyv1alpha1.Nginx{}, byContent, contentOf); err != nil {
		return err
	}
	return r.builder(mgr, pods, workers).Complete(owned.Drained(r))
}

// builder says what wakes the loop, and how it is paced.
//
// An Nginx wakes it when its generation changes, that is its spec, so the status that the operator writes
// does not. The predicate stands with For alone: as an event filter of the whole controller it would hide
// the status of Deployments as well, and no Nginx would ever be available.
//
// Owns finds the owner in a child. What stands in a child's way names no owner of ours, so it is found by
// its name. Both share one watch for each kind.
func (r *NginxReconciler) builder(mgr ctrl.Manager, pods podCache, workers int) *builder.Builder {
	byLabel, moved := handler.EnqueueRequestsFromMapFunc(byLabel), predicate.Funcs{UpdateFunc: moved}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nginx").
		For(&proxyv1alpha1.Nginx{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.serving)).
		WatchesRawSource(source.Kind[client.Object](pods, replicaSet(), byLabel, moved)).
		WatchesRawSource(source.Kind[client.Object](pods, &corev1.Pod{}, byLabel, moved)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             owned.Pauses(),
			ReconciliationTimeout:   owned.Timeout,
		})
}

// sameName asks for the Nginx that has the name of an object. When there is none, Reconcile finds that out
// in the cache.
func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// byLabel asks for the Nginx that the labels of a pod or a ReplicaSet name. Anybody can write labels: here
// they only say who shall look. An own pod always has this one, or its ReplicaSet would let go of it.
func byLabel(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[labelInstance]}}}
}

// serving asks for the Nginxes whose content a ConfigMap is.
func (r *NginxReconciler) serving(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	var all proxyv1alpha1.NginxList
	err := r.List(ctx, &all, client.InNamespace(obj.GetNamespace()), client.MatchingFields{byContent: obj.GetName()},
		client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy) // only names are read, and nothing waited for
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not tell whose content a ConfigMap is", "configmap", obj.GetName())
	}
	for i := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}
