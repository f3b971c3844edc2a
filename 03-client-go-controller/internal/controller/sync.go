package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	"example.com/operator-workshop/03-client-go-controller/internal/owned"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// syncHandler makes the children of one MyWeb match its spec, and its status match the children. It reads the
// observed state from the caches, writes the differences from the desired state, and never asks which event
// enqueued the MyWeb.
//
// A requeueAfter that is not 0 asks for another sync after that time. An error asks for a sync with backoff: the error
// is a condition whose end no watch reports, or a failure of the API server, which status never reports.
func (c *Controller) syncHandler(ctx context.Context, name cache.ObjectName) (requeueAfter time.Duration, err error) {
	if !c.expectations.satisfied(name) {
		return staleCacheRetry, nil
	}
	web, err := c.webInformers.Operator().V1().MyWebs().Lister().MyWebs(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted
	}
	if err != nil || !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return 0, err
	}
	children := myweb.DesiredChildren(web)
	problem := c.observe(web, children)
	for _, child := range children {
		if problem == nil {
			problem = c.applyChild(ctx, web, child)
		}
	}
	blocked := owned.AsCondition(problem)
	if problem != nil && blocked == nil {
		return 0, problem
	}
	requeueAfter, err = c.updateStatus(ctx, web, children, blocked)
	if err == nil && errors.Is(problem, errNodePortNotFree) {
		return 0, problem
	}
	return requeueAfter, err
}

// observe reads the live children from the caches. It returns a ConditionError that names all objects that have the
// name of a child, and which the MyWeb does not own.
func (c *Controller) observe(web *webv1.MyWeb, children []*myweb.Child) error {
	var conflicts []error
	for _, child := range children {
		cached, exists, err := c.informers[child.Kind].GetStore().GetByKey(nameOf(web).String())
		if err != nil {
			return fmt.Errorf("get %s %s from the cache: %w", child.Kind, nameOf(web), err)
		}
		if !exists {
			continue
		}
		live := cached.(myweb.Object)
		if conflict := myweb.Conflict(web, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		}
		if myweb.Kind.Owns(web, live) {
			child.Live = live
		}
	}
	return owned.Join(conflicts...)
}

// updateStatus writes a status that differs from the status that was read, and records the transition as events.
// It sends an update, not a patch, so the request names the version that was read: when a client changed the MyWeb
// meanwhile, the API server answers 409, and the status of an older spec does not overwrite a newer status.
func (c *Controller) updateStatus(
	ctx context.Context, web *webv1.MyWeb, children []*myweb.Child, blocked *myweb.ConditionError,
) (requeueAfter time.Duration, err error) {
	deployment, service := myweb.LiveOf(children)
	now, updated := time.Now(), web.DeepCopy() // objects from a cache are shared: never change them
	updated.Status = myweb.StatusFor(web, deployment, service, blocked, now)
	if equality.Semantic.DeepEqual(web.Status, updated.Status) {
		return 0, nil
	}
	if wait := owned.StatusDelay(web.Status.Conditions, updated.Status.Conditions, deployment, now); wait > 0 {
		return wait, nil
	}
	updated, err = c.web.OperatorV1().MyWebs(web.Namespace).
		UpdateStatus(ctx, updated, metav1.UpdateOptions{FieldManager: myweb.FieldOwner})
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("update the status of MyWeb %s: %w", nameOf(web), err)
	}
	c.expectations.expect(nameOf(web), "MyWeb", updated.ResourceVersion)
	for _, e := range myweb.EventsFor(web.Status, updated.Status) {
		klog.FromContext(ctx).Info("Recorded event", "reason", e.Reason, "note", e.Note)
		c.recorder.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return 0, nil
}

func nameOf(web *webv1.MyWeb) cache.ObjectName {
	return cache.MetaObjectToName(web)
}
