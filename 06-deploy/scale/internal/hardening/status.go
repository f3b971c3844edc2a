package hardening

import (
	"context"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/scale/internal/fields"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by fault/21-status-falsified and fault/21-status-fought (the operator restores a status that another client
// wrote, with its times and without events, but not endlessly), and by behaviour/10-cost-of-three-pods: two status
// writes from creation to completed, however many pods there are.

// aStatus is the name under which corrections of a status are counted: no kind of child has this name.
const aStatus = ""

// restoreStatus restores the status that the operator wrote last, when another client wrote a different status since.
// It returns the owner from the cache, nil when the cache has none.
func (h *Hardening) restoreStatus(ctx context.Context, req ctrl.Request) (client.Object, error) {
	owner := h.Owner.DeepCopyObject().(client.Object)
	if err := h.Client.Get(ctx, req.NamespacedName, owner); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	m, now := h.of(owner.GetUID()), h.Clock.Now()
	if !m.falsified(owner) || m.driftDelay(aStatus, now) > 0 {
		return owner, nil
	}
	whole := fields.Of(owner)
	whole["status"] = m.status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, owner); err != nil {
		return nil, err
	}
	if err := h.Client.Status().Update(ctx, owner); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	m.driftCorrected(aStatus, now)
	return owner, nil
}

// statusIsRight remembers the status of an owner whose reconcile had nothing to write into it.
func (h *Hardening) statusIsRight(owner client.Object) {
	if owner == nil {
		return
	}
	if m := h.of(owner.GetUID()); m.status == nil {
		m.status = statusOf(owner)
	}
}

// falsified reports whether another client wrote the status of an owner since the operator did.
func (m *memory) falsified(owner client.Object) bool {
	return m.status != nil && !reflect.DeepEqual(m.status, statusOf(owner))
}

// Statuses decorates a client: the write of a status may have to wait.
func (h *Hardening) Statuses(c client.Client) client.Client { return statuses{c, h} }

type statuses struct {
	client.Client
	h *Hardening
}

// Status implements client.StatusClient.
func (c statuses) Status() client.SubResourceWriter { return statusWriter{c.Client.Status(), c.h} }

type statusWriter struct {
	client.SubResourceWriter
	h *Hardening
}

// Update implements client.SubResourceWriter. It returns a RequeueAfter when the write has to wait.
func (w statusWriter) Update(ctx context.Context, owner client.Object, opts ...client.SubResourceUpdateOption) error {
	old, m, now := w.h.Owner.DeepCopyObject().(client.Object), w.h.of(owner.GetUID()), w.h.Clock.Now()
	if err := w.h.Client.Get(ctx, client.ObjectKeyFromObject(owner), old); err != nil {
		return err
	}
	falsified := m.falsified(old)
	wait := m.driftDelay(aStatus, now)
	if !falsified {
		var err error
		if wait, err = w.stepDelay(ctx, old, owner, now); err != nil {
			return err
		}
	}
	if wait > 0 {
		return RequeueAfter(wait)
	}
	err := w.SubResourceWriter.Update(ctx, owner, opts...)
	switch {
	case err == nil:
		m.status = statusOf(owner)
		if falsified {
			m.driftCorrected(aStatus, now)
		}
	case !apierrors.IsConflict(err): // unknown: the API server may have executed the write
		m.status = nil
	}
	return err
}

// stalled is how long a rollout must make no progress before the operator reports a part of it.
const stalled = 5 * time.Second

// stepDelay returns how long the write of a status can wait, 0 for not at all. The Deployment has the name of its owner.
//   - The Deployment controller has not observed a new generation of the Deployment: its report is about to change, and
//     a watch delivers the change. A Deployment that was just created has observed no generation.
//   - The change is only a step of a rollout. A rollout that makes progress is not reported pod by pod; a stalled rollout
//     is reported.
func (w statusWriter) stepDelay(ctx context.Context, old, owner client.Object, now time.Time) (time.Duration, error) {
	deployment := &appsv1.Deployment{}
	if err := w.h.Client.Get(ctx, client.ObjectKeyFromObject(owner), deployment); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	was, is := w.h.Conditions(old), w.h.Conditions(owner)
	stays := func(kind string) bool {
		return equality.Semantic.DeepEqual(meta.FindStatusCondition(was, kind), meta.FindStatusCondition(is, kind))
	}
	observed := deployment.Status.ObservedGeneration
	if 0 < observed && observed < deployment.Generation && deployment.DeletionTimestamp.IsZero() &&
		stays(owned.Degraded) && !meta.IsStatusConditionTrue(is, owned.Degraded) {
		return stalled, nil
	}
	isStep := stays(owned.Degraded) && stays(owned.Progressing) && meta.IsStatusConditionTrue(is, owned.Progressing) &&
		(meta.IsStatusConditionTrue(is, owned.Available) || !meta.IsStatusConditionTrue(was, owned.Available))
	if rollout := owned.RolloutOf(deployment); isStep && rollout != nil {
		return max(0, rollout.LastUpdateTime.Add(stalled).Sub(now)), nil
	}
	return 0, nil
}

func statusOf(owner client.Object) any { return fields.Of(owner)["status"] }
