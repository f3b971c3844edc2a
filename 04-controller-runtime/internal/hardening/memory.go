package hardening

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// Demanded by fault/21-second-writer and fault/21-status-fought (drift is corrected, but not as fast as
// somebody else can write), and by fault/34-*-mutated (what an admission policy changes is not sent again).

const (
	driftBurst = 5
	driftEvery = 10 * time.Second
)

// Memory is what the operator remembers of each object between reconciles. It is never needed to decide what
// is right, only to do it less often: an operator that restarts begins with none.
type Memory struct{ objects sync.Map }

// Of returns what is remembered of an object, nothing of one that was made anew under its name. Only one worker
// at a time handles an object and may use it.
func (m *Memory) Of(obj metav1.Object) *Remembered {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if known, ok := m.objects.Load(key); ok && known.(*Remembered).uid == obj.GetUID() {
		return known.(*Remembered)
	}
	r := &Remembered{uid: obj.GetUID(), mutated: map[string]string{}, drift: map[string]*rate.Limiter{}}
	m.objects.Store(key, r)
	return r
}

// Forget drops what is remembered of an object that is gone.
func (m *Memory) Forget(key types.NamespacedName) { m.objects.Delete(key) }

// Remembered is what is remembered of one object.
type Remembered struct {
	// mutated holds, for each kind of child, what an admission policy or a webhook made of the last apply.
	mutated map[string]string
	uid     types.UID
	drift   map[string]*rate.Limiter
	status  uint64
}

// driftDelay returns how long the next correction of a kind of child, or of the status, must wait, 0 for not at
// all. Two programs that want different things of one object would otherwise write as fast as they can. Each
// kind has a limit of its own, so a fight over one does not leave the others uncorrected.
func (r *Remembered) driftDelay(kind string, now time.Time) time.Duration {
	reservation := r.limiter(kind).ReserveN(now, 1)
	defer reservation.CancelAt(now)
	return reservation.DelayFrom(now)
}

// driftCorrected counts one correction. What was refused is not counted: it has a backoff of its own.
func (r *Remembered) driftCorrected(kind string, now time.Time) { r.limiter(kind).AllowN(now, 1) }

func (r *Remembered) limiter(kind string) *rate.Limiter {
	if r.drift[kind] == nil {
		r.drift[kind] = rate.NewLimiter(rate.Every(driftEvery), driftBurst)
	}
	return r.drift[kind]
}

// StatusWritten remembers the status that the operator wrote last, or found to be right.
func (r *Remembered) StatusWritten(status webv1.MyWebStatus) { r.status = sum(status) }

// StatusNotWritten notes that a write failed. After a conflict the status is what it was. After any other
// error nobody knows, because the API server may have carried the write out.
func (r *Remembered) StatusNotWritten(err error) {
	if !apierrors.IsConflict(err) {
		r.status = 0
	}
}

// statusFalsified reports whether somebody else wrote a status since.
func (r *Remembered) statusFalsified(status webv1.MyWebStatus) bool {
	return r.status != 0 && r.status != sum(status)
}

func sum(status webv1.MyWebStatus) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(status) // a hash takes everything
	return h.Sum64()
}
