package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// Reconciler makes the children of a MyWeb what its spec says, and its status what they are.
type Reconciler struct {
	client.Client
	// Clock gives the times of conditions.
	Clock clock.PassiveClock
}

// retryObstacle is when a MyWeb with an obstacle is looked at again, should no watch have told of its
// end: that another Service gave up a node port, for one.
const retryObstacle = 10 * time.Second

// Reconcile handles one MyWeb. It reads what is there, writes what differs, and never asks which event
// woke it. Errors of the API server are returned, and so retried with backoff; they never show in
// status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !web.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector removes the children
	}
	children := desiredChildren(web)
	err := r.look(ctx, web, children)
	if err == nil {
		err = r.apply(ctx, web, children)
	}
	var what *obstacle
	if found, ok := errors.AsType[obstacle](err); ok {
		what = &found
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, web, statusFor(web, children, what, metav1.Time{Time: r.Clock.Now()})); err != nil {
		return ctrl.Result{}, err
	}
	if what != nil {
		return ctrl.Result{RequeueAfter: retryObstacle}, nil
	}
	return ctrl.Result{}, nil
}

// writeStatus writes a status that differs from the one that was read. It names the version that it
// read: when the cache was behind, the API server refuses, and the next try sees more.
func (r *Reconciler) writeStatus(ctx context.Context, web *webv1.MyWeb, status webv1.MyWebStatus) error {
	if equality.Semantic.DeepEqual(web.Status, status) {
		return nil
	}
	web.Status = status
	if err := r.Status().Update(ctx, web); err != nil {
		return fmt.Errorf("update status of MyWeb %s/%s: %w", web.Namespace, web.Name, err)
	}
	return nil
}
