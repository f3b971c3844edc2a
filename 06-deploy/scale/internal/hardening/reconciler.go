package hardening

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Demanded by behaviour/14-leader-stops: the API server may still execute a request that is cancelled when the manager
// stops, while the next leader already works. Also demanded by the checks of fault/05, and by the alert on reconcile
// errors: version conflicts are tried again with backoff, and are not failures of the operator.

// Reconciler decorates a reconciler. When the manager stops, a reconcile that is under way runs to its end, within the
// one time limit of Options. Queued owners are dropped, and the next leader finds them again in its cache. Errors that
// are not failures become results.
func (h *Hardening) Reconciler(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil
		}
		inFlight := context.WithoutCancel(ctx)
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			inFlight, cancel = context.WithDeadline(inFlight, deadline)
			defer cancel()
		}
		result, err := next.Reconcile(inFlight, req)
		return h.result(req, result, err)
	})
}

// result ends a reconcile in one of three ways:
//   - nothing: all is well, or a watch reports the end of the wait;
//   - a time: to reconcile again then. A RequeueAfter or a version conflict is not returned as an error: it would be
//     logged and counted at every try. A version conflict has its own backoff;
//   - an error: the API server failed. It is logged, counted, and tried again with backoff.
//
// Of several times, also that of the core, the shortest one counts.
func (h *Hardening) result(req ctrl.Request, result ctrl.Result, err error) (_ ctrl.Result, failure error) {
	conflict := false
	for _, err := range flat(err) {
		wait, isWait := errors.AsType[RequeueAfter](err)
		switch {
		case isWait:
			result.RequeueAfter = shortest(result.RequeueAfter, time.Duration(wait))
		case apierrors.IsConflict(err):
			conflict = true
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the owner is deleted next
		default:
			failure = errors.Join(failure, err)
		}
	}
	switch {
	case failure != nil:
		return ctrl.Result{}, failure
	case conflict:
		result.RequeueAfter = shortest(result.RequeueAfter, h.backoff.When(req))
	default:
		h.backoff.Forget(req)
	}
	return result, nil
}

// shortest returns the shorter one of two waits, of which 0 is none.
func shortest(one, other time.Duration) time.Duration {
	if one == 0 || 0 < other && other < one {
		return other
	}
	return one
}

// flat returns the errors that an error joins, or the error itself; none for nil.
func flat(err error) (all []error) {
	joined, isJoined := err.(interface{ Unwrap() []error })
	switch {
	case isJoined:
		for _, err := range joined.Unwrap() {
			all = append(all, flat(err)...)
		}
	case err != nil:
		all = append(all, err)
	}
	return all
}
