// Package controller turns MyWebs into ConfigMaps, Deployments and Services, with controller-runtime.
//
// A manager brings the cache, the client, the queue, the workers and the lease. What is left to say is
// what wakes the loop (controller.go), what the cache keeps (caches.go), and the loop itself
// (reconcile.go, then what Reconcile calls).
package controller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
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
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

const (
	// firstRetry and lastRetry are the shortest and the longest wait after a failure; each failure of the
	// same MyWeb doubles it. So a fault that was mended is noticed within lastRetry, whatever it was.
	// controller-runtime's own longest wait is 1000 s: after an outage of an hour some MyWebs would stay as
	// they are for a quarter of an hour more.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// reconcileTimeout is for one MyWeb. A server that does not answer must not hold a worker for ever.
	reconcileTimeout = time.Minute
)

// SetupWithManager adds the reconciler to a manager whose cache has CacheOptions. At most workers MyWebs
// are handled at once, and one MyWeb never twice at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	if err := fillCache(context.Background(), mgr.GetCache()); err != nil {
		return err
	}
	return r.builder(mgr, workers).Complete(drained(r))
}

// builder says what wakes the loop, and how it is paced.
//
// MyWebs wake it when their generation changes, that is their spec, so the status that the operator writes
// does not. The predicate stands with For alone: as an event filter of the whole controller it would hide
// the status of Deployments as well, and no MyWeb would ever be completed.
//
// Children wake it by name, not by owner as Owns would: a child has the name of its MyWeb, so one rule
// tells of children that changed, of obstacles that came and of obstacles that went.
//
// What is not said here stays as controller-runtime has it. A panic becomes an error: one MyWeb that
// brings out a fault of ours must not take the others down with it. The queue is a priority queue: what
// is found at the start waits behind what changes now, so that a user who edits one of thousands of
// MyWebs right after a restart need not wait for all the others.
func (r *Reconciler) builder(mgr ctrl.Manager, workers int) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named("myweb").
		For(&webv1.MyWeb{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.concerned)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
			ReconciliationTimeout:   reconcileTimeout,
		})
}

// sameName asks for the MyWeb that has the name of an object. When there is none, Reconcile finds that
// out in the cache.
func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// concerned asks for the MyWebs that a Service concerns: the one that has its name, and those that wait
// for a node port that it holds, or held until now: on a change it is called for the old Service too.
func (r *Reconciler) concerned(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := sameName(ctx, obj)
	for _, port := range heldPorts(obj) {
		var webs webv1.MyWebList
		err := r.List(ctx, &webs, client.MatchingFields{byNodePort: port},
			client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy) // only names are read, and nothing waited for
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not tell who asks for a node port", "port", port)
		}
		for i := range webs.Items {
			requests = append(requests, requestFor(&webs.Items[i]))
		}
	}
	return requests
}

// drained lets a reconcile that is under way when the manager stops come to its end: the answer to a write
// is still read, and the lease given back only after it. A cancelled request might yet be carried out,
// when the next leader works already. What is queued is left; who comes next finds it again in the cache.
func drained(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
		defer cancel()
		return next.Reconcile(ctx, req)
	})
}
