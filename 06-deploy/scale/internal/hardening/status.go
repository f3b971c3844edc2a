package hardening

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/06-deploy/scale/internal/fields"
)

// Demanded by fault/21-status-falsified and fault/21-status-fought: the operator restores a status that another client
// wrote, with its times and without events, but not endlessly.

// aStatus is the name under which corrections of a status are counted: no kind of child has this name.
const aStatus = ""

// RestoreStatus decorates a core, which then always reads the status that the operator wrote last.
func RestoreStatus[T client.Object](h *Hardening, core reconcile.ObjectReconciler[T]) reconcile.ObjectReconciler[T] {
	return statusRestorer[T]{h, core}
}

type statusRestorer[T client.Object] struct {
	*Hardening
	core reconcile.ObjectReconciler[T]
}

// Reconcile implements reconcile.ObjectReconciler.
func (r statusRestorer[T]) Reconcile(ctx context.Context, owner T) (ctrl.Result, error) {
	m := r.of(owner.GetUID())
	wait, err := r.restore(ctx, m, owner)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	read, version := statusOf(owner), owner.GetResourceVersion()
	result, err := r.core.Reconcile(ctx, owner)
	switch {
	case owner.GetResourceVersion() != version: // the core wrote the status
		m.status = statusOf(owner)
	case err != nil && !apierrors.IsConflict(err): // unknown: the API server may have executed the write
		m.status = nil
	case err == nil && m.status == nil: // it was right
		m.status = read
	}
	result.RequeueAfter = shortest(result.RequeueAfter, wait)
	return result, err
}

// restore gives an owner the status that the operator wrote last. It writes that status when another client wrote a
// different one since, or returns how long the write must wait.
func (r statusRestorer[T]) restore(ctx context.Context, m *memory, owner client.Object) (time.Duration, error) {
	if m.status == nil || reflect.DeepEqual(m.status, statusOf(owner)) {
		return 0, nil
	}
	whole, now := fields.Of(owner), r.Clock.Now()
	whole["status"] = m.status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, owner); err != nil {
		return 0, err
	}
	if wait := m.driftDelay(aStatus, now); wait > 0 {
		return wait, nil
	}
	if err := r.Client.Status().Update(ctx, owner); err != nil {
		return 0, err
	}
	m.driftCorrected(aStatus, now)
	return 0, nil
}

func statusOf(owner client.Object) any { return fields.Of(owner)["status"] }
