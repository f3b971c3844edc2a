package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// applyChildren brings the children to their desired state, in order. A child that fails does not stop the others, with
// two exceptions: a conflict with any object stops all of them, and the pods wait for their page.
func (r *Reconciler) applyChildren(ctx context.Context, web *webv1.MyWeb, children []*myweb.Child) error {
	if err := r.observe(ctx, web, children); err != nil {
		return err
	}
	var problems []error
	for _, child := range children {
		err := r.applyChild(ctx, child)
		problems = append(problems, err)
		if err != nil && !child.IsApplied() {
			break
		}
	}
	return myweb.Join(problems)
}

// observe reads the live children. It returns the conflicts of the MyWeb with objects that it does not own, or
// the error of a read.
func (r *Reconciler) observe(ctx context.Context, web *webv1.MyWeb, children []*myweb.Child) error {
	var conflicts []error
	for _, child := range children {
		live := child.Live.DeepCopyObject().(client.Object)
		if err := r.Get(ctx, client.ObjectKeyFromObject(web), live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get %s %s/%s: %w", child.Kind, web.Namespace, web.Name, err)
		}
		if conflict := myweb.Conflict(web, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		}
		if myweb.IsOwnedBy(live, web) {
			child.Live = live
		}
	}
	return myweb.Join(conflicts)
}

// applyChild writes one child unless it is up to date, on one condition: no other object may have taken its name since
// it was observed. A live child must still have its UID. A missing child is applied with a resourceVersion:
// (*Store).Update in k8s.io/apiserver/pkg/registry/generic/registry still creates the object ("Wipe metadata on
// create-via-update and create-via-apply requests"), but answers 409 when the object exists by now. A plain create
// would do as well, but its fields would belong to a manager of updates, and a later apply could not remove them.
func (r *Reconciler) applyChild(ctx context.Context, child *myweb.Child) error {
	if child.Difference() == "" {
		return nil
	}
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
	}
	if err := r.Apply(ctx, child.Desired, client.FieldOwner(myweb.FieldOwner), client.ForceOwnership); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired) // Apply leaves it there
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, child.Live); err != nil {
		return err
	}
	if changed := child.Difference(); changed != "" {
		return &myweb.ConditionError{Reason: webv1.ReasonChildMutated, Message: fmt.Sprintf("%s %s: an admission policy or "+
			"a webhook changes %s: exempt the object or the user of the operator from it, then delete the object, which "+
			"will be made again", child.Kind, *child.Meta.Name, changed)}
	}
	return nil
}
