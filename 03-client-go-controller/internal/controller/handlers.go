package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// eventHandlers returns handlers that enqueue the MyWebs that a change of an object may affect. They run in the
// goroutine that delivers an informer's events, so they do nothing else.
func (c *Controller) eventHandlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: c.handleObject,
		UpdateFunc: func(old, new any) {
			c.handleObject(old) // it may have had another owner, or held another node port
			c.handleObject(new)
		},
		DeleteFunc: c.handleObject,
	}
}

// handleObject enqueues the MyWebs that one state of an object may affect.
func (c *Controller) handleObject(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // the watch missed the deletion: this is the last known state
	}
	for _, web := range c.mapToMyWebs(obj.(myweb.Object)) {
		c.workqueue.Add(web) // a name that waits in the queue is not added twice
	}
}

// mapToMyWebs returns a MyWeb itself, the MyWeb that owns another object, and the MyWebs that may be in conflict with
// the object: the MyWeb of its name, and MyWebs that ask for its node ports. No owner reference names these MyWebs, and
// they must recover at once when the object is gone: behaviour/06-*, behaviour/07-*.
func (c *Controller) mapToMyWebs(obj myweb.Object) (webs []cache.ObjectName) {
	name := cache.MetaObjectToName(obj)
	_, isMyWeb := obj.(*webv1.MyWeb)
	if _, exists, _ := c.informers["MyWeb"].GetStore().GetByKey(name.String()); isMyWeb || exists {
		webs = append(webs, name)
	}
	affected := c.indexed("MyWeb", byUID, string(myweb.Kind.UID(obj)))
	if service, ok := obj.(*corev1.Service); ok {
		ports, _ := heldNodePorts(service)
		for _, port := range ports {
			affected = append(affected, c.indexed("MyWeb", byNodePort, port)...)
		}
	}
	for _, web := range affected {
		webs = append(webs, nameOf(web.(*webv1.MyWeb)))
	}
	return webs
}
