// Stage 4, status: a sync reports what it observed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/fields"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
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
	kube          kubernetes.Interface
	web           versioned.Interface
	webInformers  externalversions.SharedInformerFactory
	kubeInformers informers.SharedInformerFactory
	children      map[string]cache.SharedIndexInformer // by kind
	workqueue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a controller whose informers are not started yet.
func NewController(kube kubernetes.Interface, web versioned.Interface) (*Controller, error) {
	c := &Controller{
		kube:          kube,
		web:           web,
		webInformers:  externalversions.NewSharedInformerFactory(web, 0),
		kubeInformers: informers.NewSharedInformerFactory(kube, 0),
		workqueue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	c.children = map[string]cache.SharedIndexInformer{
		"ConfigMap":  c.kubeInformers.Core().V1().ConfigMaps().Informer(),
		"Deployment": c.kubeInformers.Apps().V1().Deployments().Informer(),
		"Service":    c.kubeInformers.Core().V1().Services().Informer(),
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
	c.kubeInformers.StartWithContext(ctx)
	if c.webInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil ||
		c.kubeInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil {
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
	children := myweb.DesiredChildren(web)
	for _, child := range children {
		if err := c.createChild(ctx, name, child); err != nil {
			return fmt.Errorf("create %s %s: %w", child.Kind, name, err)
		}
	}
	return c.updateStatus(ctx, web, children)
}

// createChild reads a child from the cache, and creates it when it is not there. Then its live state is known.
func (c *Controller) createChild(ctx context.Context, name cache.ObjectName, child *myweb.Child) error {
	cached, exists, err := c.children[child.Kind].GetStore().GetByKey(name.String())
	if exists {
		child.Live = cached.(myweb.Object)
	}
	if exists || err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Of(child.Desired), child.Live); err != nil {
		return err
	}
	switch desired := child.Live.(type) { // each kind has its own client
	case *corev1.ConfigMap:
		child.Live, err = c.kube.CoreV1().ConfigMaps(name.Namespace).Create(ctx, desired, metav1.CreateOptions{})
	case *appsv1.Deployment:
		child.Live, err = c.kube.AppsV1().Deployments(name.Namespace).Create(ctx, desired, metav1.CreateOptions{})
	case *corev1.Service:
		child.Live, err = c.kube.CoreV1().Services(name.Namespace).Create(ctx, desired, metav1.CreateOptions{})
	}
	return err
}

// updateStatus writes the status of a MyWeb when it changed.
func (c *Controller) updateStatus(ctx context.Context, web *webv1.MyWeb, children []*myweb.Child) error {
	deployment, service := myweb.LiveOf(children)
	status := myweb.StatusFor(web, deployment, service, nil, time.Now())
	if !status.Completed {
		c.workqueue.AddAfter(cache.MetaObjectToName(web), time.Second) // nothing reports yet that the pods run
	}
	if equality.Semantic.DeepEqual(web.Status, status) {
		return nil
	}
	updated := web.DeepCopy() // objects from a cache are shared: never change them
	updated.Status = status
	_, err := c.web.OperatorV1().MyWebs(web.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	return err
}
