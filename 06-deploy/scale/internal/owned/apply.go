package owned

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Applier applies the children of all owners of a kind.
type Applier struct {
	client.Client
	Kind       Kind
	FieldOwner client.FieldOwner
	// Write applies one child, and puts the answer into Live. Hardening decorates it.
	Write func(ctx context.Context, child *Child) error
}

// NewApplier returns an Applier without decorators.
func NewApplier(c client.Client, kind Kind, fieldOwner client.FieldOwner) Applier {
	return Applier{Client: c, Kind: kind, FieldOwner: fieldOwner, Write: func(ctx context.Context, child *Child) error {
		if err := c.Apply(ctx, child.Desired, fieldOwner, client.ForceOwnership); err != nil {
			return err
		}
		answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired) // Apply leaves it there
		utilruntime.Must(err)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(answer, child.Live)
	}}
}

// Apply brings the children of an owner to their desired state, in order. A child that fails does not stop the others,
// with two exceptions: a conflict with any object stops all of them, and those after a needed child wait for it.
func (a Applier) Apply(ctx context.Context, owner client.Object, children ...*Child) error {
	if err := a.Observe(ctx, owner, children...); err != nil {
		return err
	}
	var problems []error
	for _, child := range children {
		err := a.apply(ctx, child)
		problems = append(problems, err)
		key := a.Kind.Annotation() // has the hash of the last apply, even if another client changed the child since
		if err != nil && child.Needed && child.Live.GetAnnotations()[key] != child.Meta.Annotations[key] {
			break
		}
	}
	return Join(problems...)
}

// Observe reads the live children, and puts those that the owner owns into Live. It returns the conflicts of the owner
// with objects that it does not own, or the error of a read.
func (a Applier) Observe(ctx context.Context, owner client.Object, children ...*Child) error {
	var conflicts []error
	for _, child := range children {
		live := child.Live.DeepCopyObject().(client.Object)
		key := client.ObjectKey{Namespace: *child.Meta.Namespace, Name: *child.Meta.Name}
		if err := a.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get %s %s: %w", child.Kind, key, err)
		}
		if conflict := a.Kind.Conflict(owner, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		}
		if a.Kind.Owns(owner, live) {
			child.Live = live
		}
	}
	return Join(conflicts...)
}

// apply writes one child on one condition: no other object may have taken its name since it was observed. A live child
// must still have its UID. An apply of a missing child with a resourceVersion creates it, or answers 409 when it exists
// by now ((*Store).Update in k8s.io/apiserver/pkg/registry/generic/registry). The fields of a plain create would belong
// to a manager of updates, and a later apply could not remove them.
func (a Applier) apply(ctx context.Context, child *Child) error {
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
		if child.BeforeCreate != nil {
			child.BeforeCreate()
		}
	}
	return a.Write(ctx, child)
}
