package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// Reconciler keeps the children and the status of all MyWebs true. Make it with New.
type Reconciler struct {
	client.Client
	// Events receives what changed.
	Events events.EventRecorder
	// Clock gives the times of conditions.
	Clock clock.PassiveClock

	restored restoreLimits
	pauses   workqueue.TypedRateLimiter[ctrl.Request]
	desired  func(*webv1.MyWeb) children
}

// New returns a reconciler. What it reads with the client should come from a cache that sees its own
// writes; SetupWithManager lays the indexes of that cache.
func New(c client.Client, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{
		Client:  c,
		Events:  recorder,
		Clock:   clock.RealClock{},
		pauses:  workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		desired: desiredChildren,
	}
}

// Reconcile makes the children of one MyWeb what its spec says, and its status what they are. It reads
// what is there from the cache, writes what differs, and never asks which event woke it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	err := r.Get(ctx, req.NamespacedName, web)
	if apierrors.IsNotFound(err) {
		r.restored.forget(req.NamespacedName)
		return r.end(req, 0, nil)
	}
	if err != nil || !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return r.end(req, 0, err)
	}
	children := r.desired(web)
	err = r.look(ctx, web, children)
	if err == nil {
		err = r.apply(ctx, web, children)
	}
	var what *obstacle
	if found, ok := errors.AsType[obstacle](err); ok {
		what = &found
	} else if err != nil {
		return r.end(req, 0, err)
	}
	again, err := r.tell(ctx, web, children, what)
	if err == nil && what != nil && what.unwatched {
		err = *what
	}
	return r.end(req, again, err)
}

// How long a reconcile holds its worker until the cache has seen what this process wrote, and when to look
// again after that. Almost always it is a matter of milliseconds. But a watch can hang; and the client, which
// waits for an event, gets none for an object that was made and deleted in a gap of the watch.
const (
	catchUp = time.Second
	unseen  = 5 * time.Second
)

// Get reads an object from the cache. It waits until the cache holds what this process wrote there, but not
// for long: who waits for ever holds up all other MyWebs.
func (r *Reconciler) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	waiting, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	err := r.Client.Get(waiting, key, obj, opts...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return later(unseen)
	}
	return err
}

// end says how a reconcile ends, in one of four ways:
//   - nothing: all is well, or a watch will tell what ends the wait;
//   - a time: to look again then. What status tells, and a conflict, which is no failure, are no errors: they
//     would be logged and counted as such at every try. They get growing pauses of their own;
//   - an error: the API server failed. It is logged, counted, and tried again with growing pauses;
//   - a terminal error, see ownFault: it is logged, counted, and not tried again.
func (r *Reconciler) end(req ctrl.Request, again time.Duration, err error) (ctrl.Result, error) {
	wait, notNow := errors.AsType[later](err)
	_, told := errors.AsType[obstacle](err)
	switch {
	case notNow:
		return ctrl.Result{RequeueAfter: time.Duration(wait)}, nil
	case told, apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: r.pauses.When(req)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the MyWeb is next to go
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	r.pauses.Forget(req)
	return ctrl.Result{RequeueAfter: again}, nil
}

// tell writes a status that differs from the one that was read, and records what changed by it. It names
// the version that it read: when the cache was behind, the API server refuses, and the next try sees more.
func (r *Reconciler) tell(ctx context.Context, web *webv1.MyWeb, children children, what *obstacle) (again time.Duration, err error) {
	now := r.Clock.Now()
	status, old := statusFor(web, children, what, now), web.Status
	if equality.Semantic.DeepEqual(old, status) {
		return 0, nil
	}
	if wait := untold(old, status, children.pods(web), now); wait > 0 {
		return wait, nil
	}
	web.Status = status
	err = r.Status().Update(ctx, web, fieldOwner)
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("update status of MyWeb %s/%s: %w", web.Namespace, web.Name, err)
	}
	for _, e := range eventsFor(old, status) {
		log.FromContext(ctx).Info(e.note, "reason", e.reason)
		r.Events.Eventf(web, nil, e.kind, e.reason, "Serve", "%s", e.note)
	}
	return 0, nil
}
