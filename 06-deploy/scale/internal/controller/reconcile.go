package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/myweb"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Reconciler keeps the children and the status of all MyWebs as they should be.
type Reconciler struct {
	// Client reads from a cache, and writes to the API server.
	client.Client
	// Children writes the children.
	Children owned.Applier
	// Events records what changed.
	Events events.EventRecorder
}

// Reconcile brings the children of one MyWeb to the state that its spec asks for, and reports their state. It reads their
// state from the cache, applies all children, and never asks which event enqueued the MyWeb.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: there is nothing to do
	}
	if !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	children := myweb.DesiredChildren(web)
	problem := r.Children.Apply(ctx, web, children...)
	if problem != nil && owned.AsCondition(problem) == nil {
		return ctrl.Result{}, problem // no condition reports it: controller-runtime tries again
	}
	// A reported problem is returned, too. Hardening (reconciler.go) decides whether to try again.
	return ctrl.Result{}, errors.Join(r.updateStatus(ctx, web, children, problem), problem)
}

// updateStatus writes the status when it differs from the status that was read, and records the transition as events.
// It is an update, with the resourceVersion that was read: when another client edited the MyWeb meanwhile, the API
// server answers 409, and the status of an older spec does not overwrite a newer one.
func (r *Reconciler) updateStatus(ctx context.Context, web *webv1.MyWeb, children []*owned.Child, problem error) error {
	deployment, service := myweb.LiveOf(children)
	old := web.Status
	web.Status = myweb.StatusFor(web, deployment, service, owned.AsCondition(problem), time.Now())
	if equality.Semantic.DeepEqual(old, web.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, web); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("update status of MyWeb %s/%s: %w", web.Namespace, web.Name, err))
	}
	for _, e := range owned.Events(old.Conditions, web.Status.Conditions) { // after the status is written
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return nil
}
