package hardening

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Demanded by TestAReconcileInFlightFinishes: a request that is cancelled when the manager stops might still be
// carried out, after the next leader has started.

// ReconcileTimeout is for one reconcile. A server that does not answer must not hold a worker forever.
const ReconcileTimeout = time.Minute

// FinishInFlight lets a reconcile that runs when the manager stops finish. The response to its write is still read,
// and the lease is released only after it. Queued requests are dropped; the next leader reconciles all objects.
func FinishInFlight(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReconcileTimeout)
		defer cancel()
		return next.Reconcile(ctx, req)
	})
}
