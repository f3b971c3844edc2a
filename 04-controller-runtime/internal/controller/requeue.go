package controller

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Demanded by the checks of fault/05 and fault/32 (conflicts and refusals are tried again with backoff, and
// are no failures of the operator) and by the alert on reconcile errors in chapter 06.

const (
	// firstRetry and lastRetry are the shortest and the longest backoff after a failure; each failure of the
	// same MyWeb doubles it. controller-runtime's own longest one is 1000 s: after an outage of an hour some
	// MyWebs would stay as they are for a quarter of an hour more.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// reconcileTimeout is for one MyWeb. A server that does not answer must not keep a worker forever.
	reconcileTimeout = time.Minute
)

func newBackoff() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// result ends a reconcile in one of three ways:
//   - nothing: all is well, or a watch reports what ends the wait;
//   - a time: to reconcile again then. What status reports, and a conflict of versions, are not errors: they
//     would be logged and counted as such at every try. They have a backoff of their own;
//   - an error: the API server failed. It is logged, counted, and tried again with backoff.
func (r *Reconciler) result(req ctrl.Request, blocked *myweb.ConditionError, after time.Duration,
	err error) (ctrl.Result, error) {
	wait, notNow := errors.AsType[hardening.RequeueAfter](err)
	switch {
	case notNow:
		return ctrl.Result{RequeueAfter: time.Duration(wait)}, nil
	case err == nil && blocked != nil && blocked.Retry, apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: r.backoff.When(req)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the MyWeb is deleted next
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	r.backoff.Forget(req)
	return ctrl.Result{RequeueAfter: after}, nil
}
