// Package controller turns MyWebs into ConfigMaps, Deployments and Services, with client-go alone. It is stage 8, in
// files, with the other pieces that the 14 behaviours of a MyWeb demand.
//
// Informers fill caches and deliver every change. A handler maps a change to the name of a MyWeb, a work
// queue collapses and delays these names, workers take them, and syncHandler compares the observed state with
// the desired state. Read the files in this order: informers.go, handlers.go, controller.go, sync.go,
// apply.go. Each other file names the check of the lab that demands it.
package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
)

const (
	// firstRetry and lastRetry are the shortest and the longest wait after a failure. Each failure of the same
	// MyWeb doubles the wait. Whatever the fault was, the next sync runs within lastRetry after its end.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// syncTimeout limits one sync. A server that does not answer must not keep a worker forever.
	syncTimeout = time.Minute
	// staleCacheRetry is the time to the next sync while the caches lack a write of this controller. Almost always
	// an event comes earlier. No event comes for an object that was created and deleted in a gap of the watch.
	staleCacheRetry = 5 * time.Second
	// inFlightTimeout is the time that syncs in flight get to end when the controller is asked to stop.
	inFlightTimeout = 8 * time.Second
)

// Controller keeps the children and the status of all MyWebs up to date.
type Controller struct {
	kube          kubernetes.Interface
	web           versioned.Interface
	recorder      events.EventRecorder
	webInformers  externalversions.SharedInformerFactory
	kubeInformers informers.SharedInformerFactory
	informers     map[string]cache.SharedIndexInformer // by kind
	// workqueue holds names of MyWebs. It does not add a name that already waits, and does not give a worker a
	// name that another worker handles. So two workers never handle the same MyWeb.
	workqueue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	expectations *expectations
	drift        driftLimits
}

// NewController returns a controller whose informers are not started yet.
func NewController(
	kube kubernetes.Interface, web versioned.Interface, recorder events.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		kube:     kube,
		web:      web,
		recorder: recorder,
		// No resync: it repeats the objects of the cache, and only helps a controller that forgets to retry.
		webInformers:  externalversions.NewSharedInformerFactory(web, 0),
		kubeInformers: informers.NewSharedInformerFactory(kube, 0),
		workqueue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "myweb"}),
		drift: newDriftLimits(),
	}
	err := c.addInformers()
	c.expectations = newExpectations(c.informers)
	return c, err
}

// Run handles MyWebs with the given number of workers until ctx ends. Then it waits for the syncs in flight: the API
// server may still execute a cancelled request when the next leader already works. It cancels syncs that take too long.
// Names that are still in the queue are dropped: the next leader finds their MyWebs in its caches.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer c.workqueue.ShutDown()
	logger := klog.FromContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
		return
	}
	logger.Info("Starting workers", "count", workers)
	inFlight, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.runWorker(ctx, inFlight) })
	}
	<-ctx.Done()
	c.workqueue.ShutDown()
	defer time.AfterFunc(inFlightTimeout, cancel).Stop()
	running.Wait()
	logger.Info("Stopped workers")
}

// runWorker handles one name after the other until ctx ends. A sync that has begun keeps the context inFlight.
func (c *Controller) runWorker(ctx, inFlight context.Context) {
	for ctx.Err() == nil && c.processNextWorkItem(inFlight) {
	}
}

// processNextWorkItem takes one name from the queue and syncs its MyWeb. It returns false when the queue is
// shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	name, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	// Done lets the queue give this name to a worker again.
	defer c.workqueue.Done(name)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "myweb", name.String())
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), syncTimeout)
	defer cancel()

	requeueAfter, err := c.syncHandler(ctx, name)
	if err != nil {
		logSyncError(logger, err)
		c.workqueue.AddRateLimited(name)
		return true
	}
	// Forget resets the count of failures, so that the next failure is retried soon.
	c.workqueue.Forget(name)
	if requeueAfter > 0 {
		c.workqueue.AddAfter(name, requeueAfter)
	}
	return true
}

// logSyncError logs why a sync has to be retried. It does not log a reason that the status reports.
func logSyncError(logger klog.Logger, err error) {
	if _, ok := errors.AsType[*myweb.ConditionError](err); ok {
		return
	}
	if apierrors.IsConflict(err) || errors.Is(err, errNodePortNotFree) || errors.Is(err, errDriftLimit) {
		logger.V(1).Info("Could not sync yet, retrying", "err", err)
		return
	}
	logger.Error(err, "Could not sync, retrying with backoff")
}
