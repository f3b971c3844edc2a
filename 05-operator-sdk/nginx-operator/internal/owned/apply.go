package owned

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Look reads the children as they are from the cache, and sets Live of each. It returns an Obstacle when one
// of them has its name, but is not the owner's. Keep begins with it; it stands alone where nothing is to be
// written, and status still tells of what is there.
func (k *Keeper) Look(ctx context.Context, owner client.Object, children ...*Child) error {
	var found *Obstacle
	for _, child := range children { // all of them, also behind an obstacle: status tells of the others
		key, live := client.ObjectKey{Namespace: owner.GetNamespace(), Name: *child.meta.Name}, child.empty()
		err := k.Get(ctx, key, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s %s: %w", child.Kind, key, err)
		}
		child.Live = live
		if what := k.inTheWay(owner, child); what != nil && (found == nil || found.Passing) {
			found = what
		}
	}
	if found != nil {
		return *found
	}
	return nil
}

// write applies one child under a condition: nothing may have taken its name since we looked. An existing
// child must still have its UID. One that is missing is applied with a resourceVersion: the API server
// creates an object in spite of it, but refuses to change one that has come into being.
func (k *Keeper) write(ctx context.Context, child *Child, wanted map[string]any) error {
	if child.Live != nil {
		child.meta.UID = new(child.Live.GetUID())
	} else {
		child.meta.ResourceVersion = new("1")
	}
	live, err := k.applied(ctx, child)
	if child.Live != nil && apierrors.IsInvalid(err) && wanted["spec"] != nil {
		live, err = k.replaceSpec(ctx, child, wanted)
	}
	if err != nil {
		err = fmt.Errorf("apply %s %s/%s: %w", child.Kind, *child.meta.Namespace, *child.meta.Name, err)
		if refused(err) {
			return Obstacle{Reason: ReasonChildRejected, Message: err.Error(), Unwatched: true}
		}
		return err
	}
	child.Live = live
	return nil
}

// applied applies what a child shall be and returns the API server's answer, which Apply leaves in its
// argument.
func (k *Keeper) applied(ctx context.Context, child *Child) (client.Object, error) {
	if err := k.Apply(ctx, child.want, k.fieldOwner, client.ForceOwnership); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(child.want)
	if err != nil {
		return nil, err
	}
	live := child.empty()
	return live, json.Unmarshal(answer, live)
}

// replaceSpec restores a child of which somebody changed a field in a way that leaves no room for ours
// beside it, so that an apply is refused: an apply takes away only what is ours. The spec becomes exactly
// the wanted one; what others added to it goes.
func (k *Keeper) replaceSpec(ctx context.Context, child *Child, wanted map[string]any) (client.Object, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Live)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": child.Live.GetUID(), "resourceVersion": child.Live.GetResourceVersion()},
		"spec":     replacing(wanted["spec"], have["spec"]),
	})
	if err != nil {
		return nil, err
	}
	live := child.empty()
	live.SetNamespace(child.Live.GetNamespace())
	live.SetName(child.Live.GetName())
	return live, k.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), k.fieldOwner)
}

// replacing is the merge patch that makes a value the wanted one: it takes lists as a whole, and null is
// for fields that shall go, or back to their defaults.
func replacing(want, have any) any {
	fields, ok := want.(map[string]any)
	if !ok {
		return want
	}
	had, _ := have.(map[string]any)
	patch := map[string]any{}
	for field := range had {
		patch[field] = nil
	}
	for field, value := range fields {
		patch[field] = replacing(value, had[field])
	}
	return patch
}

// refused reports whether the API server does not want a child, and will not want it at the next try
// either; not so when the error speaks of a moment: a conflict, a server that is busy.
func refused(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false // nor will it: End gives up
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
