package controller

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// AddEventHandlers calls enqueue with the name of each MyWeb that a change may affect, once for each change.
// enqueue must return quickly: it runs in the goroutine that delivers an informer's events.
func (i *Informers) AddEventHandlers(enqueue func(web cache.ObjectName)) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { i.handleObject(enqueue, obj) },
		// The old state may have had another owner, or held another node port.
		UpdateFunc: func(old, new any) { i.handleObject(enqueue, old, new) },
		DeleteFunc: func(obj any) { i.handleObject(enqueue, obj) },
	}
	for _, informer := range i.byKind() {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// handleObject enqueues the MyWebs that the given states of one object may affect.
func (i *Informers) handleObject(enqueue func(web cache.ObjectName), states ...any) {
	webs := sets.New[cache.ObjectName]()
	for _, obj := range states {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj // the watch missed the deletion: this is the last known state
		}
		webs.Insert(i.ownerOf(obj.(myweb.Object))...)
		webs.Insert(i.mapToMyWebs(obj.(myweb.Object))...)
	}
	for web := range webs {
		enqueue(web)
	}
}

// ownerOf returns a MyWeb itself, and the MyWeb that owns another object.
func (i *Informers) ownerOf(obj myweb.Object) []cache.ObjectName {
	if web, ok := obj.(*webv1.MyWeb); ok {
		return []cache.ObjectName{nameOf(web)}
	}
	return i.indexed(byUID, string(myweb.OwnerUID(obj)))
}

// indexed returns the MyWebs that an index has under a value.
func (i *Informers) indexed(index, value string) (webs []cache.ObjectName) {
	found, err := i.MyWebs.Informer().GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(err) // there is no such index
	}
	for _, web := range found {
		webs = append(webs, nameOf(web.(*webv1.MyWeb)))
	}
	return webs
}
