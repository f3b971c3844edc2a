// Stage 1, an informer: it fills a cache with all MyWebs over one watch, and delivers each change.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := NewController(versioned.NewForConfigOrDie(cfg))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Run(ctx)
}

// Controller reads MyWebs from the cache of an informer.
type Controller struct {
	webInformers externalversions.SharedInformerFactory
}

// NewController returns a controller whose informers are not started yet.
func NewController(web versioned.Interface) (*Controller, error) {
	c := &Controller{
		webInformers: externalversions.NewSharedInformerFactory(web, 0),
	}
	_, err := c.webInformers.Operator().V1().MyWebs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.logChange("Added", obj) },
		UpdateFunc: func(_, obj any) { c.logChange("Updated", obj) },
		DeleteFunc: func(obj any) { c.logChange("Deleted", obj) },
	})
	return c, err
}

// logChange logs a change of a MyWeb.
func (c *Controller) logChange(change string, obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // the watch missed the deletion: this is the last known state
	}
	web := obj.(*webv1.MyWeb)
	klog.Background().Info(change, "myweb", klog.KObj(web), "generation", web.Generation)
}

// Run starts the informers and works until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	c.webInformers.StartWithContext(ctx)
	if c.webInformers.WaitForCacheSyncWithContext(ctx).AsError() != nil {
		return
	}
	klog.FromContext(ctx).Info("The caches have synced")
	<-ctx.Done()
}
