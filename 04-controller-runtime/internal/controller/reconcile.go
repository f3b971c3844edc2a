package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Reconciler keeps the children and the status of all MyWebs as they should be. Make it with New.
type Reconciler struct {
	client.Client
	// Events records what changed.
	Events events.EventRecorder
	// Clock gives the times of conditions.
	Clock clock.PassiveClock

	live    client.Reader // reads from the API server
	backoff workqueue.TypedRateLimiter[ctrl.Request]
	memory  hardening.Memory
}

// New returns a reconciler. The client should read from a cache that has its own writes, and live from the API
// server; SetupWithManager adds the indexes to that cache.
func New(c client.Client, live client.Reader, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{Client: c, live: live, Events: recorder, Clock: clock.RealClock{}, backoff: newBackoff()}
}

// Reconcile makes the children of one MyWeb what its spec asks for, and its status what they are. It reads
// the live state from the cache, writes what differs, and never asks which event enqueued the MyWeb.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.read(ctx, req.NamespacedName, web); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.Forget(req.NamespacedName)
		}
		return r.result(req, nil, 0, client.IgnoreNotFound(err))
	}
	if !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return r.result(req, nil, 0, nil)
	}
	children := myweb.DesiredChildren(web)
	blocked, err := r.observe(ctx, web, children)
	if err == nil && blocked == nil {
		blocked, err = r.apply(ctx, web, children)
	}
	if err != nil {
		return r.result(req, nil, 0, err)
	}
	after, err := r.updateStatus(ctx, web, children, blocked)
	return r.result(req, blocked, after, err)
}

// observe reads the live children. It returns what the MyWeb is in conflict with, of all kinds at once.
func (r *Reconciler) observe(ctx context.Context, web *webv1.MyWeb, all []*myweb.Child) (*myweb.ConditionError, error) {
	var conflicts []*myweb.ConditionError
	for _, child := range all {
		live := child.Live.DeepCopyObject().(client.Object)
		if err := r.read(ctx, client.ObjectKeyFromObject(web), live); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get %s %s/%s: %w", child.Kind, web.Namespace, web.Name, err)
		}
		if conflict := myweb.Conflict(web, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		}
		if myweb.IsOwnedBy(live, web) {
			child.Live = live
		}
	}
	return myweb.Combine(conflicts), nil
}

// updateStatus writes a status that differs from the one that was read, and records the transition as events.
// It is an update and not a patch, so it names the version that it read: when somebody edited the MyWeb
// meanwhile, the API server answers 409, and no status of an older spec overwrites a newer one. In a storm of
// edits many of these updates are refused; each is one request, and the reconcile that follows was due anyway.
func (r *Reconciler) updateStatus(ctx context.Context, web *webv1.MyWeb, children []*myweb.Child,
	blocked *myweb.ConditionError) (after time.Duration, err error) {
	now, old := r.Clock.Now(), web.Status
	deployment, service := myweb.LiveOf(children)
	web.Status = myweb.StatusFor(web, deployment, service, blocked, now)
	if equality.Semantic.DeepEqual(old, web.Status) {
		r.memory.Of(web).StatusWritten(old)
		return 0, nil
	}
	guard := r.memory.GuardStatus(web, old, deployment, now)
	if guard.Wait > 0 {
		return guard.Wait, nil
	}
	if err := r.Status().Update(ctx, web, client.FieldOwner(myweb.FieldOwner)); err != nil {
		r.memory.Of(web).StatusNotWritten(err)
		return 0, client.IgnoreNotFound(fmt.Errorf("update status of MyWeb %s/%s: %w", web.Namespace, web.Name, err))
	}
	for _, e := range guard.Written(old, web.Status) {
		log.FromContext(ctx).Info(e.Note, "reason", e.Reason)
		r.Events.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return 0, nil
}
