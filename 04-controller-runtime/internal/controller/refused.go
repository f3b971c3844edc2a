package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Demanded by fault/35, a node port that is taken, and by fault/18-service-edited: see hardening.Refused and
// hardening.ReplaceElements.

// refused returns what an error of an apply means: a condition when the API server will not want the child
// at the next try either, else the error, which is about a moment: a conflict, a server that is busy.
func (r *Reconciler) refused(web *webv1.MyWeb, child *myweb.Child, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("apply %s %s/%s: %w", child.Kind, web.Namespace, web.Name, err)
	if hardening.IsNodePortTaken(err) {
		return r.nodePortRefused(web, err)
	}
	return hardening.Refused(err)
}

// replaceElements replaces the elements of lists for which an apply was refused, and applies once more when
// that leaves another difference.
func (r *Reconciler) replaceElements(ctx context.Context, child *myweb.Child, from []hardening.Difference,
	refused error) error {
	patch, err := hardening.ReplaceElements(from, child.Live)
	if patch == nil {
		return errors.Join(refused, err)
	}
	live := child.Live.DeepCopyObject().(client.Object)
	err = r.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(myweb.FieldOwner))
	if err != nil {
		return err
	}
	child.Live = live
	if rest, err := hardening.Differences(child.Fields, live); err != nil || len(rest) == 0 {
		return err
	}
	return r.applyDesired(ctx, child)
}
