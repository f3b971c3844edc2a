// Package controller turns MyWebs into ConfigMaps, Deployments and Services, with client-go alone.
//
// Informers fill caches and tell of every change. A handler turns a change into the name of a MyWeb, a
// queue collapses and paces these names, workers take them, and sync compares what is with what should
// be. Read the files in that order: caches.go, controller.go, sync.go, then what sync calls.
package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webclient "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/typed/myweb/v1"
)

const (
	// firstRetry and lastRetry are the shortest and the longest wait after a failure; each failure of the
	// same MyWeb doubles it. So a fault that was mended is noticed within lastRetry, whatever it was.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// syncTimeout is for one MyWeb. A server that does not answer must not hold a worker for ever.
	syncTimeout = time.Minute
	// drainTimeout is what work in progress gets to end when the controller is told to stop.
	drainTimeout = 8 * time.Second
)

// Options are what a controller may differ in.
type Options struct {
	// Only limits it to children of these kinds, and lets status alone. Empty: all, with status. The page
	// builds the controller up with it.
	Only []string
	// Clock gives the times of conditions; nil is the real one.
	Clock clock.PassiveClock
}

// Controller keeps the children and the status of all MyWebs true. Make it with New.
type Controller struct {
	caches *Caches
	webs   func(namespace string) webclient.MyWebInterface
	kinds  map[string]kind
	events events.EventRecorder
	clock  clock.PassiveClock

	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	own      *ownWrites
	restored restoreLimits
	failed   *repeats

	desired func(*webv1.MyWeb) children
	silent  bool
}

// New returns a controller that reads from caches, which must not be started yet, and writes with the
// clients.
func New(kube kubernetes.Interface, web versioned.Interface, caches *Caches, recorder events.EventRecorder, o Options) (*Controller, error) {
	kinds := map[string]kind{
		"ConfigMap":  kindOf(kube.CoreV1().ConfigMaps, caches.ConfigMaps.Informer().GetStore()),
		"Deployment": kindOf(kube.AppsV1().Deployments, caches.Deployments.Informer().GetStore()),
		"Service":    kindOf(kube.CoreV1().Services, caches.Services.Informer().GetStore()),
	}
	stores := map[string]cache.Store{"MyWeb": caches.Webs.Informer().GetStore()}
	for name, kind := range kinds {
		stores[name] = kind.store
	}
	c := &Controller{
		caches:  caches,
		webs:    web.OperatorV1().MyWebs,
		kinds:   kinds,
		events:  recorder,
		clock:   o.Clock,
		queue:   NewQueue(),
		own:     newOwnWrites(stores),
		failed:  newRepeats(),
		desired: desiredChildren,
		silent:  len(o.Only) > 0,
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if len(o.Only) > 0 {
		c.desired = func(web *webv1.MyWeb) children { return desiredChildren(web).only(o.Only) }
	}
	return c, caches.Handle(c.queue.Add)
}

// NewQueue returns a queue of names of MyWebs. A name that is in it already is not added twice; one that
// is being handled waits until that is done, so no MyWeb is ever handled by two workers.
func NewQueue() workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "myweb"})
}

// Handle calls wake with the name of each MyWeb that a change may concern, once for each change. It must
// return quickly.
func (c *Caches) Handle(wake func(web cache.ObjectName)) error {
	changed := func(states ...any) {
		webs := sets.New[cache.ObjectName]()
		for _, obj := range states {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj // a tombstone: it was deleted while the watch was cut off, this is its last known state
			}
			webs.Insert(c.concerned(obj.(object))...)
		}
		for web := range webs {
			wake(web)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(obj) },
		UpdateFunc: func(old, new any) { changed(old, new) }, // the old one may have had another owner, or port
		DeleteFunc: func(obj any) { changed(obj) },
	}
	for _, informer := range c.all() {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// concerned returns the MyWebs that an object concerns: itself, its owner, the one whose child it keeps
// from being made because it has its name, and those that wait for a node port that it holds.
func (c *Caches) concerned(obj object) []cache.ObjectName {
	if web, ok := obj.(*webv1.MyWeb); ok {
		return []cache.ObjectName{nameOf(web)}
	}
	var webs []cache.ObjectName
	add := func(index, value string) {
		found, err := c.Webs.Informer().GetIndexer().ByIndex(index, value)
		if err != nil {
			panic(err) // there is no such index
		}
		for _, web := range found {
			webs = append(webs, nameOf(web.(*webv1.MyWeb)))
		}
	}
	if uid := ownerUID(obj); uid != "" {
		add(byUID, string(uid))
	}
	if service, ok := obj.(*corev1.Service); ok {
		ports, _ := heldPorts(service)
		for _, port := range ports {
			add(byNodePort, port)
		}
	}
	if web, err := c.Webs.Lister().MyWebs(obj.GetNamespace()).Get(obj.GetName()); err == nil {
		webs = append(webs, nameOf(web))
	}
	return webs
}

// Run handles MyWebs, so many at once, until ctx ends. Then it waits for what is being handled: an answer
// that is under way is still read. What is queued is left; who comes next finds it again in the caches.
func (c *Controller) Run(ctx context.Context, workers int) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	klog.FromContext(ctx).Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for ctx.Err() == nil && c.processNext(work) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	timer := time.AfterFunc(drainTimeout, cancel)
	defer timer.Stop()
	running.Wait()
	klog.FromContext(ctx).Info("Stopped workers")
}

// processNext takes one name from the queue and handles it. It returns false when the queue is closed.
func (c *Controller) processNext(ctx context.Context) bool {
	name, closed := c.queue.Get()
	if closed {
		return false
	}
	defer c.queue.Done(name)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "myweb", name.String())
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), syncTimeout)
	defer cancel()

	start := time.Now()
	again, err := c.guarded(ctx, name)
	observe(start, err)
	if err != nil {
		c.queue.AddRateLimited(name)
		c.report(logger, name, err)
		return true
	}
	c.queue.Forget(name)
	c.failed.forget(name.String())
	if again > 0 {
		c.queue.AddAfter(name, again)
	}
	return true
}

// report logs why a sync has to be tried again, once for each reason.
func (c *Controller) report(logger klog.Logger, name cache.ObjectName, err error) {
	_, told := errors.AsType[obstacle](err)
	reason, _, _ := strings.Cut(err.Error(), "\n") // the stack of a panic is never the same twice
	switch {
	case told: // status tells it
	case apierrors.IsConflict(err), errors.Is(err, errFreeing):
		logger.V(1).Info("Somebody was faster, looking again", "err", err)
	case c.failed.isNew(name.String(), reason):
		logger.Error(err, "Could not serve, trying again with growing pauses")
	}
}

// errPanic wraps what a sync panicked with.
var errPanic = errors.New("panic")

// guarded calls sync. A panic becomes an error: one MyWeb that brings out a fault of ours must not take
// the others down with it.
func (c *Controller) guarded(ctx context.Context, name cache.ObjectName) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			again, err = 0, fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	return c.sync(ctx, name)
}
