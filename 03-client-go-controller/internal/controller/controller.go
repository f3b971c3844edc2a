// Package controller turns MyWebs into ConfigMaps, Deployments and Services, with client-go alone.
//
// Informers fill caches and deliver every change. A handler maps a change to the name of a MyWeb, a work
// queue collapses and delays these names, workers take them, and syncHandler compares the observed state with
// the desired state. Read the files in that order: informers.go, handlers.go, controller.go, sync.go,
// apply.go. The other files are hardening. Each names the check that demands it.
package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/operator-workshop/03-client-go-controller/internal/hardening"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// Name is the name of the controller in events.
const Name = "myweb-operator"

const (
	// firstRetry and lastRetry are the shortest and the longest wait after a failure. Each failure of the same
	// MyWeb doubles it, so whatever the fault was, its end is noticed within lastRetry.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// syncTimeout limits one sync. A server that does not answer must not keep a worker forever.
	syncTimeout = time.Minute
	// staleCacheRetry is when to look again while the caches lack an own write. Almost always an event comes
	// before. None comes for an object that was created and deleted in a gap of the watch.
	staleCacheRetry = 5 * time.Second
)

// Controller keeps the children and the status of all MyWebs up to date.
type Controller struct {
	kube      kubernetes.Interface
	web       versioned.Interface
	informers *Informers
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	// workqueue holds names of MyWebs. A name that is in it is not added twice, and one that is being handled
	// is given out again only afterwards, so two workers never handle the same MyWeb.
	workqueue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	expectations *expectations
	stores       map[string]cache.Store // the caches by kind
	memory       hardening.Memory
	desired      func(*webv1.MyWeb) []*myweb.Child
}

// NewController returns a controller that reads from informers, which must not be started yet, and writes
// with the clients.
func NewController(
	kube kubernetes.Interface, web versioned.Interface, informers *Informers, recorder events.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		kube:         kube,
		web:          web,
		informers:    informers,
		recorder:     recorder,
		clock:        clock.RealClock{},
		workqueue:    NewWorkqueue(),
		expectations: newExpectations(informers.stores()),
		stores:       informers.stores(),
		desired:      myweb.DesiredChildren,
	}
	return c, informers.AddEventHandlers(c.workqueue.Add)
}

// NewWorkqueue returns a queue of names of MyWebs that retries with exponential backoff.
func NewWorkqueue() workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "myweb"})
}

// Run handles MyWebs with the given number of workers until ctx ends. Then it waits for the syncs in flight.
// Names that are still in the queue are dropped: the next leader finds their MyWebs in its caches.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer c.workqueue.ShutDown()
	logger := klog.FromContext(ctx)
	if !c.informers.WaitForCacheSync(ctx) {
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
	finishInFlight(&running, cancel)
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

	start := time.Now()
	requeueAfter, err := c.recoverPanic(ctx, name)
	observeSync(start, err)
	if err != nil {
		logSyncError(logger, err)
		c.workqueue.AddRateLimited(name)
		return true
	}
	// Forget ends the count of failures, so that the next one is retried soon.
	c.workqueue.Forget(name)
	if requeueAfter > 0 {
		c.workqueue.AddAfter(name, requeueAfter)
	}
	return true
}
