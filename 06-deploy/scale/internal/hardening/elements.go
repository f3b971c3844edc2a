package hardening

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/scale/internal/fields"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by fault/18-service-edited and fault/18-service-port-added. A user who edits the port of a Service from 80
// to 81 edits the key by which an apply merges. The apply would add port 80 beside 81, both with the same name, so the
// API server refuses it (kubernetes/kubernetes#118725). So the operator replaces this element in place, and no other
// element.

// replaced returns the live object with the operator's elements as it desires them. It returns nil when none of them
// differs, or when the error of the apply has another cause than a desired element that does not fit beside the live
// element which another client edited: two ports of one name, a volume of two types.
func (c *comparison) replaced(refusal error) client.Object {
	duplicate := apierrors.IsInternalError(refusal) && strings.Contains(refusal.Error(), "duplicate nodePort")
	if !duplicate && !apierrors.IsInvalid(refusal) {
		return nil
	}
	live := fields.Of(c.Live)
	if !fields.Replace(c.fields, live) {
		return nil
	}
	object := c.Live.DeepCopyObject().(client.Object)
	utilruntime.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(live, object))
	object.GetObjectKind().SetGroupVersionKind(c.Live.GetObjectKind().GroupVersionKind()) // a patch must not remove it
	return object
}

// applyReplaced writes a refused child with its elements replaced, if no other client wrote it since it was read. It
// applies the child again when other fields differ, too. It returns the refusal when that has another cause.
func (a hardenedApplier) applyReplaced(ctx context.Context, c *comparison, refusal error) (owned.Object, error) {
	replaced := c.replaced(refusal)
	if replaced == nil {
		return nil, refusal
	}
	patch := client.MergeFromWithOptions(c.Live, client.MergeFromWithOptimisticLock{})
	if err := a.Client.Patch(ctx, replaced, patch, a.FieldOwner); err != nil {
		return nil, fmt.Errorf("patch %s: %w", c, err)
	}
	if len(fields.Differences(c.fields, fields.Of(replaced))) == 0 {
		return replaced, nil
	}
	c.Live = replaced
	return a.next.Apply(ctx, c.Child)
}
