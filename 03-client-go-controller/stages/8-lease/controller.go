package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webscheme "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
)

// Controller handles MyWebs by name.
type Controller struct {
	kube          kubernetes.Interface
	web           versioned.Interface
	webInformers  externalversions.SharedInformerFactory
	kubeInformers informers.SharedInformerFactory
	informers     map[string]cache.SharedIndexInformer // by kind
	workqueue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	broadcaster   events.EventBroadcaster
	recorder      events.EventRecorder
}

// NewController returns a controller whose informers are not started yet.
func NewController(kube kubernetes.Interface, web versioned.Interface) (*Controller, error) {
	c := &Controller{
		kube:          kube,
		web:           web,
		webInformers:  externalversions.NewSharedInformerFactory(web, 0),
		kubeInformers: informers.NewSharedInformerFactory(kube, 0),
		workqueue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, 30*time.Second)),
		broadcaster: events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()}),
	}
	c.recorder = c.broadcaster.NewRecorder(webscheme.Scheme, myweb.FieldOwner)
	c.informers = map[string]cache.SharedIndexInformer{
		"MyWeb":      c.webInformers.Operator().V1().MyWebs().Informer(),
		"ConfigMap":  c.kubeInformers.Core().V1().ConfigMaps().Informer(),
		"Deployment": c.kubeInformers.Apps().V1().Deployments().Informer(),
		"Service":    c.kubeInformers.Core().V1().Services().Informer(),
	}
	for _, informer := range c.informers {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.handleObject,
			UpdateFunc: func(_, obj any) { c.handleObject(obj) },
			DeleteFunc: c.handleObject,
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// handleObject enqueues a MyWeb itself. For another object it enqueues the MyWeb that controls it, and the MyWeb of its
// name: the two may be in conflict.
func (c *Controller) handleObject(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // the watch missed the deletion: this is the last known state
	}
	object := obj.(metav1.Object)
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "MyWeb" {
		c.workqueue.Add(cache.NewObjectName(object.GetNamespace(), owner.Name))
	}
	c.workqueue.Add(cache.MetaObjectToName(object)) // a name that waits in the queue is not added twice
}

// Run starts the informers and the workers, and works until ctx ends. Then the syncs in flight are finished.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer c.workqueue.ShutDown()
	defer c.broadcaster.Shutdown()
	inFlight := context.WithoutCancel(ctx)
	if err := c.broadcaster.StartRecordingToSinkWithContext(inFlight); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot record events")
	}
	c.webInformers.StartWithContext(ctx)
	c.kubeInformers.StartWithContext(ctx)
	if c.webInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil ||
		c.kubeInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil {
		return
	}
	klog.FromContext(ctx).Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.runWorker(ctx, inFlight) })
	}
	<-ctx.Done()
	c.workqueue.ShutDown()
	running.Wait()
}

// runWorker handles one name after the other until ctx ends. A sync that has begun is not cancelled.
func (c *Controller) runWorker(ctx, inFlight context.Context) {
	for ctx.Err() == nil && c.processNextWorkItem(inFlight) {
	}
}

// processNextWorkItem takes one name from the queue and syncs its MyWeb. After a failure the name returns to the
// queue, after a time that doubles with each failure. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	name, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	defer c.workqueue.Done(name) // from now on a worker may have this name again
	if err := c.syncHandler(ctx, name); err != nil {
		klog.FromContext(ctx).Error(err, "Requeued", "myweb", name)
		c.workqueue.AddRateLimited(name)
		return true
	}
	c.workqueue.Forget(name) // the next failure counts as the first one
	return true
}

// syncHandler compares the desired state of one MyWeb with the observed state.
func (c *Controller) syncHandler(ctx context.Context, name cache.ObjectName) error {
	web, err := c.webInformers.Operator().V1().MyWebs().Lister().MyWebs(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil // it was deleted
	}
	if err != nil || !web.DeletionTimestamp.IsZero() { // being deleted: the garbage collector removes the children
		return err
	}
	children := myweb.DesiredChildren(web)
	for _, child := range children {
		err := c.applyChild(ctx, web, child)
		if conflict, ok := errors.AsType[*myweb.ConditionError](err); ok {
			return c.updateStatus(ctx, web, children, conflict)
		} else if err != nil {
			return fmt.Errorf("apply %s %s: %w", child.Kind, name, err)
		}
	}
	return c.updateStatus(ctx, web, children, nil)
}

// applyChild sends the desired state of a child that differs from it. The API server sets these fields, removes
// fields that were applied before and are not desired any more, and keeps the fields of other managers.
func (c *Controller) applyChild(ctx context.Context, web *webv1.MyWeb, child *myweb.Child) error {
	name := cache.MetaObjectToName(web)
	cached, exists, err := c.informers[child.Kind].GetStore().GetByKey(name.String())
	if err != nil {
		return err
	}
	if exists {
		if conflict := myweb.Conflict(web, child.Kind, cached.(myweb.Object)); conflict != nil {
			return conflict
		}
		child.Live = cached.(myweb.Object)
	}
	if child.Difference() == "" {
		return nil
	}
	options := metav1.ApplyOptions{FieldManager: myweb.FieldOwner, Force: true}
	switch desired := child.Desired.(type) { // each kind has its own client
	case *corev1ac.ConfigMapApplyConfiguration:
		child.Live, err = c.kube.CoreV1().ConfigMaps(name.Namespace).Apply(ctx, desired, options)
	case *appsv1ac.DeploymentApplyConfiguration:
		child.Live, err = c.kube.AppsV1().Deployments(name.Namespace).Apply(ctx, desired, options)
	case *corev1ac.ServiceApplyConfiguration:
		child.Live, err = c.kube.CoreV1().Services(name.Namespace).Apply(ctx, desired, options)
	}
	return err
}

// updateStatus writes the status of a MyWeb when it changed, and records the transition as events.
func (c *Controller) updateStatus(
	ctx context.Context, web *webv1.MyWeb, children []*myweb.Child, blocked *myweb.ConditionError,
) error {
	deployment, service := myweb.LiveOf(children)
	status := myweb.StatusFor(web, deployment, service, blocked, time.Now())
	if equality.Semantic.DeepEqual(web.Status, status) {
		return nil
	}
	updated := web.DeepCopy() // objects from a cache are shared: never change them
	updated.Status = status
	if _, err := c.web.OperatorV1().MyWebs(web.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for _, e := range myweb.EventsFor(web.Status, status) {
		c.recorder.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return nil
}
