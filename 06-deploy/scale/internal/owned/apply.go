package owned

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// An Applier applies one child. Hardening decorates it.
type Applier interface {
	// Apply brings a child to its desired state, and returns the live child, nil when it wrote nothing.
	Apply(ctx context.Context, child *Child) (live Object, err error)
}

// Observe reads the live children, and puts those that the owner owns into Live. It returns the conflicts of the owner
// with objects that it does not own, or the error of a read.
func (k Kind) Observe(ctx context.Context, cache client.Reader, owner client.Object, children ...*Child) error {
	var conflicts []error
	for _, child := range children {
		live := child.Live.DeepCopyObject().(client.Object)
		key := client.ObjectKey{Namespace: *child.Meta.Namespace, Name: *child.Meta.Name}
		if err := cache.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get %s %s: %w", child.Kind, key, err)
		}
		if conflict := k.Conflict(owner, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		}
		if k.Owns(owner, live) {
			child.Live = live
		}
	}
	return Join(conflicts...)
}

// Apply applies observed children in order. A child that fails does not stop the others, except those that need it.
func (k Kind) Apply(ctx context.Context, applier Applier, children ...*Child) error {
	var problems []error
	for _, child := range children {
		if child.BeforeCreate != nil && child.Live.GetUID() == "" {
			child.BeforeCreate()
		}
		live, err := applier.Apply(ctx, child)
		if live != nil {
			child.Live = live
		}
		problems = append(problems, err)
		key := k.Annotation() // has the hash of the last apply, even if another client changed the child since
		if err != nil && child.Needed && child.Live.GetAnnotations()[key] != child.Meta.Annotations[key] {
			break
		}
	}
	return Join(problems...)
}

// ServerSideApply is the Applier without decorators.
type ServerSideApply struct {
	Client     client.Client
	FieldOwner client.FieldOwner
}

// Apply implements Applier. The write names the object that was observed: a live child by its UID. An apply with a
// resourceVersion creates a missing child, or answers 409 when it exists by now ((*Store).Update in k8s.io/apiserver). A
// plain create would give the fields to a manager of updates, and a later apply could not remove them.
func (a ServerSideApply) Apply(ctx context.Context, child *Child) (Object, error) {
	if child.Difference() == "" { // it is up to date
		return nil, nil
	}
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
	}
	if err := a.Client.Apply(ctx, child.Desired, a.FieldOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", child.Kind, *child.Meta.Name, err)
	}
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired) // the client puts it there
	utilruntime.Must(err)
	live := child.Live.DeepCopyObject().(Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, live); err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return live, nil
}
