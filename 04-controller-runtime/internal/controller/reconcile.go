package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Reconciler keeps the children and the status of all MyWebs as they should be.
type Reconciler struct {
	client.Client                      // reads from a cache, and writes to the API server
	Applier       owned.Applier        // writes the children
	Events        events.EventRecorder // records what changed
	Now           func() time.Time     // of the conditions
}

// Reconcile brings the children of a MyWeb, which reconcile.AsReconciler read, to the state that its spec asks for, and
// reports their state. It reads the state from the cache, and never asks which event enqueued the MyWeb.
func (r *Reconciler) Reconcile(ctx context.Context, web *webv1.MyWeb) (ctrl.Result, error) {
	if !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	children := myweb.DesiredChildren(web)
	problem := myweb.Kind.Observe(ctx, r, web, children...)
	if problem == nil {
		problem = myweb.Kind.Apply(ctx, r.Applier, children...)
	}
	blocked := owned.AsCondition(problem)
	if problem != nil && blocked == nil {
		return ctrl.Result{}, problem // no condition reports it: the caller tries again with backoff
	}
	return r.updateStatus(ctx, web, children, blocked)
}

// updateStatus writes the status when it differs from the status that was read, and records the transition as events. The
// result has a time when the write or a retry must wait. The update has the resourceVersion that was read: when a client
// edited the MyWeb meanwhile, the answer is 409, and the status of an older spec does not overwrite a newer status.
func (r *Reconciler) updateStatus(ctx context.Context, web *webv1.MyWeb, children []*owned.Child,
	blocked *owned.ConditionError) (ctrl.Result, error) {
	retry := ctrl.Result{RequeueAfter: ptr.Deref(blocked, owned.ConditionError{}).RetryAfter}
	deployment, service := myweb.LiveOf(children)
	old, now := web.Status, r.Now()
	web.Status = myweb.StatusFor(web, deployment, service, blocked, now)
	if equality.Semantic.DeepEqual(old, web.Status) {
		return retry, nil
	}
	if wait := owned.StatusDelay(old.Conditions, web.Status.Conditions, deployment, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err := r.Status().Update(ctx, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("update status of MyWeb %s: %w", web.Name, err))
	}
	for _, e := range owned.Events(old.Conditions, web.Status.Conditions) { // after the status is written
		log.FromContext(ctx).Info("Recorded event", "reason", e.Reason, "note", e.Note)
		r.Events.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return retry, nil
}
