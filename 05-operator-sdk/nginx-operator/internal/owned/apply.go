package owned

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/internal/conditions"
	"github.com/example/nginx-operator/internal/hardening"
)

// An Applier applies the children of all resources of one kind.
type Applier struct {
	Client     hardening.Client
	Owner      Kind
	FieldOwner client.FieldOwner
	Clock      clock.PassiveClock
	Memory     *hardening.Memory
}

// Observe sets Live of each child that the owner owns. Other objects may have the name of a child: it returns a
// ConditionError that names all of them.
func (a *Applier) Observe(ctx context.Context, owner client.Object, children ...*Child) error {
	var conflicts []*conditions.ConditionError
	for _, child := range children {
		live := child.empty.DeepCopyObject().(client.Object)
		err := a.Client.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: *child.meta.Name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s: %w", child, err)
		}
		isOwned, conflict := a.Owner.conflict(owner, live, child.String())
		if isOwned {
			child.Live = live
		}
		conflicts = append(conflicts, conflict)
	}
	return conditions.Combine(conflicts)
}

// Apply observes the children, and writes those that are not up to date. A conflict stops all writes; a child
// that the API server refuses does not stop the others. Without an error, it returns how long the correction of
// drift has to wait.
func (a *Applier) Apply(ctx context.Context, owner client.Object, children ...*Child) (wait time.Duration, err error) {
	if err := a.Observe(ctx, owner, children...); err != nil {
		return 0, err
	}
	var refused []*conditions.ConditionError
	for _, child := range children {
		delay, err := a.reconcileChild(ctx, owner, child)
		problem := conditions.AsError(err)
		if err != nil && problem == nil {
			return 0, err
		}
		refused, wait = append(refused, problem), max(wait, delay)
	}
	return wait, conditions.Combine(refused)
}

func (a *Applier) reconcileChild(ctx context.Context, owner client.Object, child *Child) (time.Duration, error) {
	memory := a.Memory.Of(owner)
	hash, err := child.setAppliedHash(a.Owner, owner)
	if err != nil {
		return 0, reconcile.TerminalError(fmt.Errorf("apply %s: %w", child, err)) // another try cannot fix it
	}
	diff := child.differences()
	if child.Live != nil && len(diff) == 0 {
		return 0, nil // it is up to date
	}
	if err := cmp.Or(memory.Mutated(child.String(), hash, diff), a.Client.CanAdopt(ctx, owner, child.Live)); err != nil {
		return 0, err
	}
	isDrift := child.Live == nil || child.Live.GetAnnotations()[a.Owner.annotation()] == hash
	if wait := memory.DriftDelay(a.Clock.Now()); isDrift && wait > 0 {
		return wait, nil
	}
	err = a.apply(ctx, child)
	if hardening.Repair(ctx, a.Client, a.FieldOwner, child.Live, diff, &err) {
		err = a.apply(ctx, child)
	}
	if err != nil {
		return 0, hardening.Rejected(fmt.Errorf("apply %s: %w", child, err))
	}
	if isDrift { // a refused write is not counted: it has its own backoff
		memory.DriftCorrected(a.Clock.Now())
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return 0, memory.SetMutated(child.String(), hash, child.differences())
}

// apply writes one child if no other object took its name since it was observed, and sets Live to the response.
// An existing child must still have its UID. A missing child is applied with a resourceVersion that no object
// has: the API server compares it with that of an existing object, and ignores it when it creates an object
// (k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Update: "Wipe metadata
// on create-via-update and create-via-apply requests to match create behavior").
func (a *Applier) apply(ctx context.Context, child *Child) error {
	if child.Live == nil {
		child.meta.ResourceVersion = new("1")
	} else {
		child.meta.UID = new(child.Live.GetUID())
	}
	if err := a.Client.Apply(ctx, child.desired, a.FieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	answer, err := json.Marshal(child.desired) // Apply stores the response in its argument
	if err != nil {
		return err
	}
	child.Live = child.empty.DeepCopyObject().(client.Object)
	return json.Unmarshal(answer, child.Live)
}
