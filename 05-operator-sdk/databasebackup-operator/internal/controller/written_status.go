package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How often a status that another client wrote is corrected: correctionBurst times at once, then once every
// correctionEvery. Without this limit, two programs that write one status would write as fast as they can.
const (
	correctionBurst = 5
	correctionEvery = 10 * time.Second
)

// writtenStatus remembers the status that this process wrote last, by object. It bounds corrections of a falsified
// status, and keeps them from being recorded as transitions: TestAFalsifiedStatusIsCorrectedWithinBounds demands it.
type writtenStatus[S any] struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*writes[S]
}

type writes[S any] struct {
	uid         types.UID
	status      S
	corrections *rate.Limiter
}

// last returns the status from which transitions are recorded: the one that this process wrote, or else the one that
// was read. A wait above 0 means that somebody else wrote the one that was read, and that it must not be corrected yet.
func (w *writtenStatus[S]) last(obj client.Object, read S, now time.Time) (status S, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.objects[client.ObjectKeyFromObject(obj)]
	if own == nil || own.uid != obj.GetUID() || equality.Semantic.DeepEqual(own.status, read) {
		return read, 0
	}
	reservation := own.corrections.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return own.status, wait
}

// set remembers a status that was written, or that was already right.
func (w *writtenStatus[S]) set(obj client.Object, status S) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects == nil {
		w.objects = map[types.NamespacedName]*writes[S]{}
	}
	key := client.ObjectKeyFromObject(obj)
	if own := w.objects[key]; own == nil || own.uid != obj.GetUID() {
		w.objects[key] = &writes[S]{uid: obj.GetUID(), corrections: rate.NewLimiter(rate.Every(correctionEvery),
			correctionBurst)}
	}
	w.objects[key].status = status
}

// forget drops an object that is gone.
func (w *writtenStatus[S]) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, key)
}
