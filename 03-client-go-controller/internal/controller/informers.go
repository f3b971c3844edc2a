package controller

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Indexes answer "which objects have this value?" without a search through all objects.
const (
	byUID      = "uid"      // of the MyWebs
	byNodePort = "nodePort" // of the MyWebs that ask for a node port, and of the Services that have one
)

// addInformers makes an informer for the MyWebs, and one for each kind of their children. Each lists all objects of
// its kind once, then follows one watch, and calls the event handlers.
func (c *Controller) addInformers() error {
	c.informers = map[string]cache.SharedIndexInformer{
		"MyWeb":      c.webInformers.Operator().V1().MyWebs().Informer(),
		"ConfigMap":  c.kubeInformers.Core().V1().ConfigMaps().Informer(),
		"Deployment": c.kubeInformers.Apps().V1().Deployments().Informer(),
		"Service":    c.kubeInformers.Core().V1().Services().Informer(),
	}
	if err := c.informers["MyWeb"].AddIndexers(cache.Indexers{byUID: uidOf, byNodePort: wantedNodePort}); err != nil {
		return err
	}
	if err := c.informers["Service"].AddIndexers(cache.Indexers{byNodePort: heldNodePorts}); err != nil {
		return err
	}
	for _, informer := range c.informers {
		if _, err := informer.AddEventHandler(c.eventHandlers()); err != nil {
			return err
		}
		if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
			return err
		}
	}
	return nil
}

// logWatchError logs that a watch could not begin or ended, unless the program ends: that is not an error.
func logWatchError(ctx context.Context, r *cache.Reflector, err error) {
	if ctx.Err() == nil {
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// StartInformers starts the informers. They run until ctx ends.
func (c *Controller) StartInformers(ctx context.Context) {
	c.webInformers.StartWithContext(ctx)
	c.kubeInformers.StartWithContext(ctx)
}

// ShutdownInformers waits until the informers have ended. The context of StartInformers must have ended before.
func (c *Controller) ShutdownInformers() {
	c.webInformers.Shutdown()
	c.kubeInformers.Shutdown()
}

// HasSynced reports whether the caches hold all objects that existed when the informers were started.
func (c *Controller) HasSynced() bool {
	for _, informer := range c.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// indexed returns the objects of a kind that have a value in an index.
func (c *Controller) indexed(kind, index, value string) []any {
	found, err := c.informers[kind].GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(err) // an index of this name does not exist
	}
	return found
}

func uidOf(obj any) ([]string, error) {
	return []string{string(obj.(*webv1.MyWeb).UID)}, nil
}

func wantedNodePort(obj any) ([]string, error) {
	if port := obj.(*webv1.MyWeb).Spec.NodePortNumber; port != nil {
		return []string{strconv.Itoa(int(*port))}, nil
	}
	return nil, nil
}

// heldNodePorts returns the ports that no other Service can have while this one does.
func heldNodePorts(obj any) (ports []string, err error) {
	spec := obj.(*corev1.Service).Spec
	held := []int32{spec.HealthCheckNodePort}
	for _, port := range spec.Ports {
		held = append(held, port.NodePort)
	}
	for _, port := range held {
		if port != 0 {
			ports = append(ports, strconv.Itoa(int(port)))
		}
	}
	return ports, nil
}
