package hardening

import (
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/types"
)

// Demanded by fault/21-second-writer and fault/21-status-fought: drift is corrected, but not as fast as another program
// can write. Each kind of child has its own limit, and so has the status: a fight over one of them leaves the others
// alone.

const (
	driftBurst = 5
	driftEvery = 10 * time.Second
)

// The number of owners that are remembered, and the time after the last reconcile that needed a memory.
const (
	maxOwners  = 4096
	rememberIt = time.Hour
)

// A memory holds facts about one owner between reconciles. The operator never needs it to compute the desired state,
// only to write less often: an operator that restarts begins without memories, and the oldest memories are dropped.
type memory struct {
	applied map[string]string // for each kind of child, the annotation of the last apply
	mutated map[string]string // for each kind of child, what an admission policy made of the last apply, "" for nothing
	drift   map[string]*rate.Limiter
	status  any // that the operator wrote last, or found correct; nil when it is unknown
}

// of returns the memory of an owner. Only one worker at a time handles an owner and may use its memory.
func (h *Hardening) of(owner types.UID) *memory {
	known, found := h.owners.Get(owner)
	if !found {
		known = &memory{applied: map[string]string{}, mutated: map[string]string{}, drift: map[string]*rate.Limiter{}}
	}
	h.owners.Add(owner, known, rememberIt)
	return known.(*memory)
}

// driftDelay returns how long the next correction of a kind must wait, 0 for not at all.
func (m *memory) driftDelay(kind string, now time.Time) time.Duration {
	reservation := m.limiter(kind).ReserveN(now, 1)
	defer reservation.CancelAt(now)
	return reservation.DelayFrom(now)
}

// driftCorrected counts one correction. A refused correction is not counted: it has its own backoff.
func (m *memory) driftCorrected(kind string, now time.Time) { m.limiter(kind).AllowN(now, 1) }

func (m *memory) limiter(kind string) *rate.Limiter {
	if m.drift[kind] == nil {
		m.drift[kind] = rate.NewLimiter(rate.Every(driftEvery), driftBurst)
	}
	return m.drift[kind]
}
