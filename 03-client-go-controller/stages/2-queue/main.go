// Stage 2, a work queue: a change becomes a name in a queue. A worker takes a name out of the queue, and puts the
// name back when its sync failed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := NewController(kubernetes.NewForConfigOrDie(cfg), versioned.NewForConfigOrDie(cfg))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Run(ctx, 2)
}

// Controller handles MyWebs by name.
type Controller struct {
	kube         kubernetes.Interface
	webInformers externalversions.SharedInformerFactory
	workqueue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a controller whose informers are not started yet.
func NewController(kube kubernetes.Interface, web versioned.Interface) (*Controller, error) {
	c := &Controller{
		kube:         kube,
		webInformers: externalversions.NewSharedInformerFactory(web, 0),
		workqueue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	_, err := c.webInformers.Operator().V1().MyWebs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueMyWeb,
		UpdateFunc: func(_, obj any) { c.enqueueMyWeb(obj) },
		DeleteFunc: c.enqueueMyWeb,
	})
	return c, err
}

// enqueueMyWeb adds the name of a MyWeb to the queue. A name that waits there is not added twice.
func (c *Controller) enqueueMyWeb(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		c.workqueue.Add(name)
	}
}

// Run starts the informers and the workers, and works until ctx ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer c.workqueue.ShutDown()
	c.webInformers.StartWithContext(ctx)
	if c.webInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil {
		return
	}
	klog.FromContext(ctx).Info("Starting workers", "count", workers)
	for range workers {
		go wait.UntilWithContext(ctx, c.runWorker, time.Second)
	}
	<-ctx.Done()
}

// runWorker handles one name after the other until the queue is shut down.
func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
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
	if err != nil {
		return err
	}
	if _, err := c.kube.CoreV1().ConfigMaps(web.Namespace).Get(ctx, web.Name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Synced", "myweb", name)
	return nil
}
