package hardening

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Hardening makes the decorators for the operator of one kind, the owner of the children.
type Hardening struct {
	// Kind is the kind of the owners.
	Kind owned.Kind
	// FieldOwner owns the fields that the operator applies.
	FieldOwner client.FieldOwner
	// Client reads from a cache that has its own writes (Reads), and APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	// Clock gives the time to limits. When it is nil, New sets the clock of the machine.
	Clock clock.PassiveClock

	backoff workqueue.TypedRateLimiter[ctrl.Request]
	owners  *cache.LRUExpireCache
}

const (
	// firstRetry and lastRetry are the shortest and the longest backoff after a failure; each failure of the same owner
	// doubles it. The longest backoff of controller-runtime is 1000 s: after an outage of an hour, some owners would
	// wait for another quarter of an hour.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// reconcileTimeout limits one reconcile. A server that does not answer must not keep a worker forever.
	reconcileTimeout = time.Minute
)

// New returns a Hardening with the given public fields.
func New(h Hardening) *Hardening {
	h.backoff, h.owners = newBackoff[ctrl.Request](), cache.NewLRUExpireCache(maxOwners)
	if h.Clock == nil {
		h.Clock = clock.RealClock{}
	}
	return &h
}

func newBackoff[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry)
}

// Options are for the controller: a backoff after errors, and the one time limit of a reconcile.
func (*Hardening) Options() controller.Options {
	return controller.Options{RateLimiter: newBackoff[ctrl.Request](), ReconciliationTimeout: reconcileTimeout}
}

// RequeueAfter is an error that asks for another reconcile after a time. Nothing has failed.
type RequeueAfter time.Duration

// Error implements error.
func (r RequeueAfter) Error() string { return "reconcile again in " + time.Duration(r).String() }
