package composite

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fieldOwner owns the fields that hooks name.
const fieldOwner = client.FieldOwner("composite-controller")

// manage applies the desired children and deletes the others. An error of one child does not stop the rest.
func (r *Reconciler) manage(ctx context.Context, parent *unstructured.Unstructured,
	observed map[string]map[string]*unstructured.Unstructured, desired []map[string]any) (err error) {
	wanted := map[*unstructured.Unstructured]bool{}
	for _, fields := range desired {
		child := &unstructured.Unstructured{Object: fields}
		kind := r.kindOfChild(child)
		if kind == nil {
			err = errors.Join(err, fmt.Errorf("the hook wants a %s of %s, which is not among the childResources",
				child.GetKind(), child.GetAPIVersion()))
			continue
		}
		live := observed[kind.key()][child.GetName()]
		wanted[live] = true
		if e := r.apply(ctx, parent, *kind, live, child); e != nil {
			err = errors.Join(err, fmt.Errorf("apply %s %s: %w", kind.Kind, child.GetName(), e))
		}
	}
	for _, named := range observed {
		for _, live := range named {
			if wanted[live] || live.GetDeletionTimestamp() != nil {
				continue
			}
			if e := r.remove(ctx, live); e != nil {
				err = errors.Join(err, fmt.Errorf("delete %s %s: %w", live.GetKind(), live.GetName(), e))
			}
		}
	}
	return err
}

func (r *Reconciler) kindOfChild(child *unstructured.Unstructured) *childKind {
	for i, kind := range r.children {
		if kind.GroupVersionKind == child.GroupVersionKind() {
			return &r.children[i]
		}
	}
	return nil
}

// apply writes a child that is not up to date: it applies the fields that the hook names, and keeps those of other
// clients. It never overwrites an object that the parent does not control: a live child must still have its UID. A
// missing child is applied with a resourceVersion: the API server creates it, or answers 409 if the name is taken.
func (r *Reconciler) apply(ctx context.Context, parent *unstructured.Unstructured, kind childKind,
	live, desired *unstructured.Unstructured) error {
	desired.SetNamespace(parent.GetNamespace())
	err := controllerutil.SetControllerReference(parent, desired, r.Scheme(),
		controllerutil.WithBlockOwnerDeletion(false))
	switch {
	case err != nil:
		return err
	case live == nil:
		desired.SetResourceVersion("1")
	case live.GetDeletionTimestamp() != nil || !kind.inPlace || isUpToDate(live.Object, desired.Object):
		return nil
	default:
		desired.SetUID(live.GetUID())
	}
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner,
		client.ForceOwnership); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", kind.Kind, "child", desired.GetName())
	return nil
}

// remove deletes a child, unless another object has its name by now.
func (r *Reconciler) remove(ctx context.Context, live *unstructured.Unstructured) error {
	uid := live.GetUID()
	return client.IgnoreNotFound(r.Delete(ctx, live, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
