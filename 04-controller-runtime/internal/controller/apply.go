package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// apply writes the children that are not up to date, in order. A child that an admission policy changed, or that
// must wait, does not stop the others: what they report is returned together.
func (r *Reconciler) apply(ctx context.Context, web *webv1.MyWeb, all []*myweb.Child) (*myweb.ConditionError, error) {
	return hardening.ApplyAll(all, func(child *myweb.Child) error { return r.applyChild(ctx, web, child) })
}

// applyChild writes one child unless it is up to date. Its live state becomes what the API server answers.
func (r *Reconciler) applyChild(ctx context.Context, web *webv1.MyWeb, child *myweb.Child) error {
	differences, err := hardening.Differences(child.Fields, child.Live)
	if err != nil || len(differences) == 0 {
		return err
	}
	guard, err := r.guardApply(ctx, web, child, differences)
	if err != nil {
		return err
	}
	if err := r.chooseNodePort(ctx, web, child); err != nil {
		return err
	}
	if err := r.write(ctx, web, child, differences); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return guard.Applied()
}

// write applies one child on a condition: nothing may have taken its name since it was observed. A live child
// must still have its UID. A missing one is applied with a resourceVersion: (*Store).Update in
// k8s.io/apiserver/pkg/registry/generic/registry creates an object in spite of it ("Wipe metadata on
// create-via-update and create-via-apply requests"), but answers 409 when one exists by now. A plain create
// would do as well, but its fields would belong to a manager of updates, and a later apply could not remove them.
func (r *Reconciler) write(ctx context.Context, web *webv1.MyWeb, child *myweb.Child, d []hardening.Difference) error {
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
	}
	err := r.applyDesired(ctx, child)
	if hardening.MustReplaceElements(err) {
		err = r.replaceElements(ctx, child, d, err)
	}
	return r.refused(web, child, err)
}

// applyDesired sends the desired state by server-side apply, and takes over the answer as the live state.
func (r *Reconciler) applyDesired(ctx context.Context, child *myweb.Child) error {
	if err := r.Apply(ctx, child.Desired, client.FieldOwner(myweb.FieldOwner), client.ForceOwnership); err != nil {
		return err
	}
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired) // Apply leaves it there
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answer, child.Live)
}
