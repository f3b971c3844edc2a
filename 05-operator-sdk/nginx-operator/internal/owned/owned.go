// Package owned keeps the objects that a custom resource owns as they should be, and says how that went.
//
// It is what chapters 03 and 04 write out for MyWebs, for a resource of any kind: server-side apply of what
// differs, never over an object of somebody else, with a limit on what others undo.
package owned

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Child is an object that a resource owns.
type Child struct {
	// Kind is for messages.
	Kind string
	// Live is what the child is, after Keep; nil when there is none.
	Live client.Object

	want  runtime.ApplyConfiguration
	meta  *metav1ac.ObjectMetaApplyConfiguration
	empty func() client.Object
}

// Deployment returns a child that shall be as want says. Only what want names is owned.
func Deployment(want *appsv1ac.DeploymentApplyConfiguration) *Child {
	return &Child{Kind: "Deployment", want: want, meta: want.ObjectMetaApplyConfiguration,
		empty: func() client.Object { return &appsv1.Deployment{} }}
}

// Service returns a child that shall be as want says. Only what want names is owned.
func Service(want *corev1ac.ServiceApplyConfiguration) *Child {
	return &Child{Kind: "Service", want: want, meta: want.ObjectMetaApplyConfiguration,
		empty: func() client.Object { return &corev1.Service{} }}
}

// A Keeper keeps the children of all resources of one kind. Make it with New.
type Keeper struct {
	client.Client
	// Clock limits how often a child is restored.
	Clock clock.PassiveClock

	kind       schema.GroupVersionKind // of the owners
	fieldOwner client.FieldOwner
	annotation string
	restored   limits
	pauses     workqueue.TypedRateLimiter[ctrl.Request]
}

// How long a Keeper waits after a failure: twice as long after each, between these two.
const (
	FirstRetry = 5 * time.Millisecond
	LastRetry  = 30 * time.Second
)

// New returns a keeper of what resources of a kind own. What it reads with the client should come from a
// cache that sees its own writes.
func New(c client.Client, kind schema.GroupVersionKind, owner client.FieldOwner) *Keeper {
	return &Keeper{
		Client:     c,
		Clock:      clock.RealClock{},
		kind:       kind,
		fieldOwner: owner,
		annotation: annotation(kind),
		pauses:     Pauses(),
	}
}

// Pauses returns a limiter with growing pauses after failures, for controller.Options.
func Pauses() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](FirstRetry, LastRetry)
}

// FieldOwner is who owns the fields that are applied.
func (k *Keeper) FieldOwner() client.FieldOwner { return k.fieldOwner }

// Keep makes the children of a resource as they should be, in order, and sets Live of each. settled says
// that the resource's status already speaks of its newest generation, so what is missing was there before.
//
// It returns an Obstacle when something that the user has to know keeps a child from being so, and another
// error for what a later try will mend. Hand either to End.
func (k *Keeper) Keep(ctx context.Context, owner client.Object, settled bool, children ...*Child) error {
	if err := k.Look(ctx, owner, children...); err != nil {
		return err
	}
	for _, child := range children {
		if err := k.keep(ctx, owner, settled, child); err != nil {
			return err
		}
	}
	return nil
}

// keep writes one child, unless it is as it should be.
func (k *Keeper) keep(ctx context.Context, owner client.Object, settled bool, child *Child) error {
	wanted, err := k.sign(owner, child)
	if err != nil {
		return ownFault(err)
	}
	same, err := covers(child.Live, wanted)
	if err != nil {
		return ownFault(err)
	}
	if same {
		return nil
	}
	key, restoring := client.ObjectKeyFromObject(owner), k.restores(settled, child)
	if restoring {
		if wait := k.restored.wait(key, k.Clock.Now()); wait > 0 {
			return later(wait)
		}
	}
	if err := k.write(ctx, child, wanted); err != nil {
		return err
	}
	if restoring { // what was refused is no fight, and has its own pauses
		k.restored.took(key, k.Clock.Now())
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	if same, err := covers(child.Live, wanted); err != nil || !same {
		return errors.Join(err, fmt.Errorf("apply %s %s: the API server accepted it, and something there "+
			"(a webhook?) changed it at once", child.Kind, key))
	}
	return nil
}

// ownFault wraps an error that can only come from a fault of this program: trying again brings it again.
func ownFault(err error) error {
	return reconcile.TerminalError(fmt.Errorf("fault of the operator: %w", err))
}

// later is returned instead of doing something now: it may be done after this time.
type later time.Duration

func (l later) Error() string { return "not before " + time.Duration(l).String() }

// How long a reconcile holds its worker until the cache has seen what this process wrote, and when to look
// again after that: a watch can hang, and one that missed an object never tells of it.
const (
	catchUp = time.Second
	unseen  = 5 * time.Second
)

// Get reads an object from the cache. It waits until the cache holds what this process wrote there, but not
// for long: who waits for ever holds up all other resources.
func (k *Keeper) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	waiting, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	err := k.Client.Get(waiting, key, obj, opts...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return later(unseen)
	}
	return err
}

// End says how a reconcile ends, in one of four ways:
//   - nothing: all is well, or a watch will tell what ends the wait;
//   - a time: to look again then. What status tells, and a conflict, which is no failure, are no errors: they
//     would be logged and counted as such at every try. They get growing pauses of their own;
//   - an error: the API server failed. It is logged, counted, and tried again with growing pauses;
//   - a terminal error, a fault of the operator's own: it is logged, counted, and not tried again.
func (k *Keeper) End(req ctrl.Request, again time.Duration, err error) (ctrl.Result, error) {
	wait, notNow := errors.AsType[later](err)
	_, told := errors.AsType[Obstacle](err)
	switch {
	case notNow:
		return ctrl.Result{RequeueAfter: time.Duration(wait)}, nil
	case told, apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: k.pauses.When(req)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the resource is next to go
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	k.pauses.Forget(req)
	return ctrl.Result{RequeueAfter: again}, nil
}

// Forget ends the account of a resource that is gone.
func (k *Keeper) Forget(req ctrl.Request) {
	k.restored.forget(req.NamespacedName)
	k.pauses.Forget(req)
}

// Timeout is for one reconcile. A server that does not answer must not hold a worker for ever.
const Timeout = time.Minute

// Drained lets a reconcile that is under way when the manager stops come to its end: the answer to a write
// is still read, and the lease given back only after it. A cancelled request might yet be carried out, when
// the next leader works already, and would be logged as a failure. What is queued is left; who comes next finds
// it again in the cache.
func Drained(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
		defer cancel()
		return next.Reconcile(ctx, req)
	})
}
