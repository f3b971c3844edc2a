package hardening

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by behaviour/14-leader-stops: the API server may still execute a request that is cancelled when the manager
// stops, while the next leader already works. Also demanded by the checks of fault/05 and fault/32, and by the alert on
// reconcile errors: conflicts and refusals are tried again with backoff, and are not failures of the operator.

// Reconciler decorates a reconciler. When the manager stops, a reconcile that is under way runs to its end, within the
// one time limit of Options. Queued owners are dropped, and the next leader finds them again in its cache. Errors of
// the reconciler become results.
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
		before, err := h.restoreStatus(inFlight, req)
		if err != nil {
			return h.result(req, ctrl.Result{}, err)
		}
		result, err := next.Reconcile(inFlight, req)
		if err == nil {
			h.statusIsRight(before)
		}
		return h.result(req, result, err)
	})
}

// result ends a reconcile in one of three ways:
//   - nothing: all is well, or a watch reports the end of the wait;
//   - a time: to reconcile again then. An error that the status reports, or a version conflict, is not returned as an
//     error: it would be logged and counted at every try. It has its own backoff;
//   - an error: the API server failed. It is logged, counted, and tried again with backoff.
//
// Of several times, also that of the core, the shortest one counts.
func (h *Hardening) result(req ctrl.Request, result ctrl.Result, err error) (_ ctrl.Result, failure error) {
	retry := false
	var waits []time.Duration
	for _, err := range flat(err) {
		wait, isWait := errors.AsType[RequeueAfter](err)
		problem := owned.AsCondition(err)
		if problem != nil && problem.RetryAfter > 0 {
			waits = append(waits, problem.RetryAfter)
		}
		switch {
		case isWait:
			waits = append(waits, time.Duration(wait))
		case problem != nil:
			retry = retry || problem.Retry
		case apierrors.IsConflict(err):
			retry = true
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the owner is deleted next
		default:
			failure = errors.Join(failure, err)
		}
	}
	if failure != nil {
		return ctrl.Result{}, failure
	}
	if retry {
		waits = append(waits, h.backoff.When(req))
	}
	if len(waits) == 0 {
		h.backoff.Forget(req)
	}
	if result.RequeueAfter > 0 {
		waits = append(waits, result.RequeueAfter)
	}
	if len(waits) > 0 {
		result.RequeueAfter = slices.Min(waits)
	}
	return result, nil
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
