package hardening

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/internal/conditions"
)

// Demanded by TestTheFourWaysToEndAReconcile and TestARefusedChildDoesNotDelayTheNodes: a problem that the status
// reports is not logged as an error. It is still retried if no watch reports its end.

// How long the exponential backoff after failures is, at first and at most.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// A Backoff delays each retry of a request.
type Backoff = workqueue.TypedRateLimiter[ctrl.Request]

// NewBackoff returns a Backoff that doubles each delay, for controller.Options and for Result.
func NewBackoff() Backoff {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// Result ends a reconcile in one of four ways:
//   - nothing: there is no problem, or a watch will report the change that is needed;
//   - after a delay. A ConditionError, which the status reports, and a conflict (409) are not errors here, because
//     errors are logged and counted at every try. They have a backoff of their own;
//   - an error: the API server failed. It is logged, counted, and retried with backoff;
//   - a terminal error (reconcile.TerminalError), a fault of the operator: it is logged, counted, and not
//     retried.
func Result(backoff Backoff, req ctrl.Request, requeueAfter time.Duration, err error) (ctrl.Result, error) {
	wait, isWait := errors.AsType[RequeueAfter](err)
	problem := conditions.AsError(err)
	switch {
	case isWait:
		return ctrl.Result{RequeueAfter: time.Duration(wait)}, nil
	case problem != nil && problem.Retry, apierrors.IsConflict(err):
		retry := backoff.When(req)
		if requeueAfter > 0 { // a planned delay is not extended by the backoff
			retry = min(retry, requeueAfter)
		}
		return ctrl.Result{RequeueAfter: retry}, nil
	case problem == nil && err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, err
	}
	backoff.Forget(req)
	return ctrl.Result{RequeueAfter: requeueAfter}, nil
}

// Sooner returns the shorter of two delays, of which 0 means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
