package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// ownWrites knows what this process wrote and its caches have not seen yet. A cache is always a moment
// behind; who decides by one that lacks his own last write creates a child twice, or writes a status
// over a newer one. The API server would refuse both, but they are requests for nothing.
type ownWrites struct {
	stores map[string]cache.Store // by kind

	mu      sync.Mutex
	written map[cache.ObjectName]map[string]string // MyWeb → kind → resource version of the last write
}

func newOwnWrites(stores map[string]cache.Store) *ownWrites {
	return &ownWrites{stores: stores, written: map[cache.ObjectName]map[string]string{}}
}

// add notes that an object of a kind was written for a MyWeb, and what resource version it got.
func (w *ownWrites) add(web cache.ObjectName, kind, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written[web] == nil {
		w.written[web] = map[string]string{}
	}
	w.written[web][kind] = version
}

// seen reports whether the caches hold all that was written for a MyWeb. When they do not, the event that
// brings what is missing wakes the MyWeb.
func (w *ownWrites) seen(web cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, version := range w.written[web] {
		// Resource versions of one kind can be compared, since Kubernetes 1.35.
		order, err := resourceversion.CompareResourceVersion(w.stores[kind].LastStoreSyncResourceVersion(), version)
		if err == nil && order < 0 {
			return false
		}
	}
	delete(w.written, web)
	return true
}
