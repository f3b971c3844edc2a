package owned

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// An Applier applies the children of all resources of one kind.
type Applier struct {
	client.Client
	Owner      Kind
	FieldOwner client.FieldOwner
}

// Observe sets Live of each child that the owner owns. Other objects may have the name of a child: it returns a
// ConditionError that names all of them.
func (a Applier) Observe(ctx context.Context, owner client.Object, children ...*Child) error {
	var conflicts []error
	for _, child := range children {
		child.setOwner(a.Owner, owner)
		live := child.Live.DeepCopyObject().(client.Object)
		key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: *child.meta.Name}
		if err := a.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get %s: %w", child, err)
		}
		isOwned, conflict := a.Owner.conflict(owner, live, child.String())
		if isOwned {
			child.Live = live
		}
		if conflict != nil {
			conflicts = append(conflicts, conflict)
		}
	}
	return Join(conflicts...)
}

// Apply writes the observed children that are not up to date. An error of one child does not stop the others.
func (a Applier) Apply(ctx context.Context, children ...*Child) error {
	var problems []error
	for _, child := range children {
		if child.difference() != "" {
			problems = append(problems, a.apply(ctx, child))
		}
	}
	return Join(problems...)
}

// apply writes one child if no other object took its name since it was observed, and sets Live to the response.
// An existing child must still have its UID. A missing child is applied with a resourceVersion that no object
// has: the API server compares it with that of an existing object, and ignores it when it creates an object
// (k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Update: "Wipe metadata
// on create-via-update and create-via-apply requests to match create behavior").
func (a Applier) apply(ctx context.Context, child *Child) error {
	if uid := child.Live.GetUID(); uid != "" {
		child.meta.UID = &uid
	} else {
		child.meta.ResourceVersion = new("1")
	}
	if err := a.Client.Apply(ctx, child.desired, a.FieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.desired) // Apply leaves it there
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, child.Live); err != nil {
		return err
	}
	if changed := child.difference(); changed != "" {
		return Errorf(ReasonChildMutated, "%s: an admission policy or a webhook changes %s: exempt "+
			"the object or the user of the operator from it, then delete the object, which will be made again", child, changed)
	}
	return nil
}
