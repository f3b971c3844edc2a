package hardening

import (
	"time"

	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/types"
)

// Demanded by fault/21-second-writer and fault/21-status-fought: drift is corrected, but not as fast as another program
// can write. Each kind of child has a limit of its own, and the status has: a fight over one leaves the others alone.

const (
	driftBurst = 5
	driftEvery = 10 * time.Second
)

// Owners that are remembered, and for how long after their last reconcile that needed it.
const (
	maxOwners  = 4096
	rememberIt = time.Hour
)

// A memory is what is remembered of one owner between reconciles. It is never needed to decide what is right, only to
// do it less often: an operator that restarts begins with none, and the oldest ones are dropped.
type memory struct {
	applied map[string]string // for each kind of child, the annotation of the last apply
	mutated map[string]string // for each kind of child, what an admission policy made of the last apply
	drift   map[string]*rate.Limiter
	status  any // that the operator wrote last, or found to be right; nil when nobody knows
}

// of returns what is remembered of an owner. Only one worker at a time handles an owner and may use it.
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

// driftCorrected counts one correction. What was refused is not counted: it has a backoff of its own.
func (m *memory) driftCorrected(kind string, now time.Time) { m.limiter(kind).AllowN(now, 1) }

func (m *memory) limiter(kind string) *rate.Limiter {
	if m.drift[kind] == nil {
		m.drift[kind] = rate.NewLimiter(rate.Every(driftEvery), driftBurst)
	}
	return m.drift[kind]
}
