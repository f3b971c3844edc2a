package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Demanded by fault/10-mywebs-unseen and behaviour/10-cost-of-one: no write is repeated.

// expectations are the writes of this process that its caches do not show yet. A cache is always a moment
// behind. A controller whose cache lacks its own last write creates a child twice, or overwrites a newer status.
// The API server would refuse both, but the requests would be useless.
type expectations struct {
	informers map[string]cache.SharedIndexInformer // by kind

	mu      sync.Mutex
	written map[cache.ObjectName]map[string]string // MyWeb, kind, resource version of the last write
}

func newExpectations(informers map[string]cache.SharedIndexInformer) *expectations {
	return &expectations{informers: informers, written: map[cache.ObjectName]map[string]string{}}
}

// expect records the resource version that an object of a MyWeb got from a write.
func (e *expectations) expect(web cache.ObjectName, kind, resourceVersion string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written[web] == nil {
		e.written[web] = map[string]string{}
	}
	e.written[web][kind] = resourceVersion
}

// satisfied reports whether the caches show all objects that were written for a MyWeb. While an object is missing, the
// event that brings this object enqueues the MyWeb.
func (e *expectations) satisfied(web cache.ObjectName) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for kind, version := range e.written[web] {
		// Resource versions of one kind can be compared, since Kubernetes 1.35.
		shown := e.informers[kind].GetStore().LastStoreSyncResourceVersion()
		order, err := resourceversion.CompareResourceVersion(shown, version)
		if err == nil && order < 0 {
			return false
		}
	}
	delete(e.written, web)
	return true
}
