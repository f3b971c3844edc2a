package owned

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/conditions"
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
		live := child.empty.DeepCopyObject().(client.Object)
		err := a.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: *child.meta.Name}, live)
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
		if conflict != nil {
			conflicts = append(conflicts, conflict)
		}
	}
	return conditions.Join(conflicts)
}

// Apply observes the children, and writes those that are not up to date. A conflict stops all writes. An error of one
// child does not stop the others.
func (a Applier) Apply(ctx context.Context, owner client.Object, children ...*Child) error {
	if err := a.Observe(ctx, owner, children...); err != nil {
		return err
	}
	var problems []error
	for _, child := range children {
		child.setOwner(a.Owner, owner)
		if child.Live == nil || child.difference() != "" {
			problems = append(problems, a.apply(ctx, child))
		}
	}
	return conditions.Join(problems)
}

// apply writes one child if no other object took its name since it was observed, and sets Live to the response.
// An existing child must still have its UID. A missing child is applied with a resourceVersion that no object
// has: the API server compares it with that of an existing object, and ignores it when it creates an object
// (k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Update: "Wipe metadata
// on create-via-update and create-via-apply requests to match create behavior").
func (a Applier) apply(ctx context.Context, child *Child) error {
	if child.Live == nil {
		child.meta.ResourceVersion = new("1")
	} else {
		child.meta.UID = new(child.Live.GetUID())
	}
	if err := a.Client.Apply(ctx, child.desired, a.FieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.desired) // Apply leaves it there
	if err != nil {
		return err
	}
	child.Live = child.empty.DeepCopyObject().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, child.Live); err != nil {
		return err
	}
	if changed := child.difference(); changed != "" {
		return conditions.Errorf(conditions.ReasonChildMutated, "%s: an admission policy or a webhook changes %s: exempt "+
			"the object or the user of the operator from it, then delete the object, which will be made again", child, changed)
	}
	return nil
}
