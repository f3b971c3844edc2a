package hardening

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestDriftCorrectionIsBoundedAndFollowingIsNot, TestAFalsifiedStatusIsCorrectedAndBounded and
// TestAMutatedChildIsAppliedOnce: drift is corrected, but not as fast as another client can write. A write that an
// admission policy changes is not sent again.

// How often drift of one resource is corrected: driftBurst times at once, and then once every driftEvery. Without
// this limit, two programs that want different values of one field would write as fast as they can.
const (
	driftBurst = 5
	driftEvery = 10 * time.Second
)

// Memory is what the operator remembers of each resource between reconciles. It is not needed for the desired state,
// only to write less often: an operator that restarts begins with an empty Memory.
type Memory struct{ resources sync.Map }

// Of returns what is remembered of a resource. Only one worker at a time handles a resource and may use it.
func (m *Memory) Of(obj client.Object) *Remembered {
	key := client.ObjectKeyFromObject(obj)
	if r, ok := m.resources.Load(key); ok && r.(*Remembered).uid == obj.GetUID() {
		return r.(*Remembered)
	}
	r := &Remembered{uid: obj.GetUID(), mutated: map[string]string{}}
	r.drift = rate.NewLimiter(rate.Every(driftEvery), driftBurst)
	m.resources.Store(key, r)
	return r
}

// Forget drops what is remembered of a resource that is gone.
func (m *Memory) Forget(key types.NamespacedName) { m.resources.Delete(key) }

// Remembered is what is remembered of one resource.
type Remembered struct {
	uid     types.UID
	mutated map[string]string // kind of child: hash of the desired state, and the fields that differ
	drift   *rate.Limiter
	status  any
}

// DriftDelay returns how long the next correction of drift must wait, 0 if it need not wait.
func (r *Remembered) DriftDelay(now time.Time) time.Duration {
	reservation := r.drift.ReserveN(now, 1)
	defer reservation.CancelAt(now)
	return reservation.DelayFrom(now)
}

// DriftCorrected counts one correction.
func (r *Remembered) DriftCorrected(now time.Time) { r.drift.AllowN(now, 1) }

// SetStatus remembers the status that the operator wrote last, or found to be right; nil when the answer to a
// write got lost.
func (r *Remembered) SetStatus(status any) { r.status = status }

// RestoreStatus reports whether another client wrote the status since the operator did. If so, it replaces the status
// by the operator's own, so that transition times and events are about real changes.
func RestoreStatus[S any](r *Remembered, status *S) (falsified bool) {
	own, known := r.status.(S)
	if !known || equality.Semantic.DeepEqual(own, *status) {
		return false
	}
	*status = own
	return true
}
