package hardening

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by fault/21-second-writer and fault/21-status-fought: drift is corrected, but not as fast as another program
// can write. Each kind of child has its own limit, and so has the status: a fight over one of them leaves the others
// alone.

// The first corrections are made at once. Then the operator waits after each correction, twice as long each time. Without
// a correction for a time, the count begins again.
const (
	driftBurst      = 5
	driftBackoff    = 15 * time.Second
	maxDriftBackoff = 5 * time.Minute
	forgetDrift     = 2 * maxDriftBackoff
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
	drift   map[string]*drift // for each kind of child, and for the status
	status  any               // that the operator wrote last, or found correct; nil when it is unknown
	// refusals has the backoff after the API server refused a child, for each kind of child.
	refusals workqueue.TypedRateLimiter[string]
}

// of returns the memory of an owner. Only one worker at a time handles an owner and may use its memory.
func (h *Hardening) of(owner types.UID) *memory {
	known, found := h.owners.Get(owner)
	if !found {
		known = &memory{applied: map[string]string{}, mutated: map[string]string{}, drift: map[string]*drift{},
			refusals: newBackoff[string]()}
	}
	h.owners.Add(owner, known, rememberIt)
	return known.(*memory)
}

// drift counts the corrections of one kind.
type drift struct {
	corrections int
	last        time.Time             // of the last correction
	fight       *owned.ConditionError // that is reported, nil for none
	named       int                   // the corrections when the other client of the fight was looked up
}

func (m *memory) driftOf(kind string, now time.Time) *drift {
	if m.drift[kind] == nil || now.Sub(m.drift[kind].last) > forgetDrift {
		m.drift[kind] = &drift{}
	}
	return m.drift[kind]
}

// driftDelay returns how long the next correction of a kind must wait, 0 for not at all.
func (m *memory) driftDelay(kind string, now time.Time) time.Duration {
	d := m.driftOf(kind, now)
	if d.corrections < driftBurst {
		return 0
	}
	backoff := min(driftBackoff<<min(d.corrections-driftBurst, 8), maxDriftBackoff)
	return max(0, d.last.Add(backoff).Sub(now))
}

// driftCorrected counts one correction. A refused correction is not counted: it has its own backoff.
func (m *memory) driftCorrected(kind string, now time.Time) {
	d := m.driftOf(kind, now)
	d.corrections, d.last = d.corrections+1, now
}
