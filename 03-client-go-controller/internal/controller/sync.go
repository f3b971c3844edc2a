package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// unseen is when to look again at a MyWeb of which the caches lack something. Almost always an event comes
// before; none comes of an object that was made and deleted in a gap of the watch.
const unseen = 5 * time.Second

// sync makes the children of one MyWeb what its spec says, and its status what they are. It reads what is
// there from the caches, writes what differs, and never asks which event woke it. A time that is not 0
// asks to be called again after it. An error asks for it with backoff: an obstacle that no watch follows,
// which status tells, or a failure of the API server, which status never tells.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) (again time.Duration, err error) {
	if !c.own.seen(name) {
		return unseen, nil
	}
	web, err := c.caches.Webs.Lister().MyWebs(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		c.restored.forget(name)
		return 0, nil
	}
	if err != nil || !web.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return 0, err
	}
	children := c.desired(web)
	err = c.look(web, children)
	if err == nil {
		err = c.apply(ctx, web, children)
	}
	if wait, ok := errors.AsType[later](err); ok {
		return time.Duration(wait), nil
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return 0, nil // the MyWeb is next to go
	}
	var what *obstacle
	if found, ok := errors.AsType[obstacle](err); ok {
		what = &found
	} else if err != nil {
		return 0, err
	}
	again, err = c.tell(ctx, web, children, what)
	if err == nil && what != nil && what.unwatched {
		return 0, *what
	}
	return again, err
}

// tell writes a status that differs from the one that was read, and records what changed by it. It names
// the version that it read: when the cache was behind, the API server refuses, and the next try sees more.
func (c *Controller) tell(ctx context.Context, web *webv1.MyWeb, children children, what *obstacle) (again time.Duration, err error) {
	now := c.clock.Now()
	status := statusFor(web, children, what, now)
	if c.silent || equality.Semantic.DeepEqual(web.Status, status) {
		return 0, nil
	}
	if wait := untold(web.Status, status, children.pods(web), now); wait > 0 {
		return wait, nil
	}
	told := web.DeepCopy() // what comes from a cache is shared: never change it
	told.Status = status
	answer, err := c.webs(web.Namespace).UpdateStatus(ctx, told, metav1.UpdateOptions{FieldManager: fieldOwner})
	if apierrors.IsNotFound(err) {
		return 0, nil // it was deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("update status of MyWeb %s/%s: %w", web.Namespace, web.Name, err)
	}
	c.own.add(nameOf(web), "MyWeb", answer.ResourceVersion)
	for _, e := range eventsFor(web.Status, status) {
		klog.FromContext(ctx).Info(e.note, "reason", e.reason)
		c.events.Eventf(web, nil, e.kind, e.reason, "Serve", "%s", e.note)
	}
	return 0, nil
}

func nameOf(web *webv1.MyWeb) cache.ObjectName {
	return cache.MetaObjectToName(web)
}
