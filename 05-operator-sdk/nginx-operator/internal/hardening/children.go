package hardening

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/fields"
)

// Children decorates the applies of a client. An apply that would change nothing is not sent (demanded by
// behaviour/10-restarted), nor is one that an admission policy changed before. A correction of drift may have to wait,
// an orphan is not adopted, an element that another client edited is replaced, and a refusal is reported.
func (h *Hardening) Children(c client.Client) client.Client { return children{c, h} }

type children struct {
	client.Client
	h *Hardening
}

// Apply implements client.Writer.
func (c children) Apply(ctx context.Context, desired runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	child, err := c.childOf(ctx, desired)
	if err != nil {
		return err
	}
	if child.live.GetUID() != "" && len(child.diff) == 0 { // it is up to date: the live object is the answer
		return runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Of(child.live), desired)
	}
	m, now := c.h.of(child.owner.UID), c.h.Clock.Now()
	if len(child.diff) > 0 && child.mutation() == m.mutated[child.kind] { // another apply would end the same way
		return child.mutated()
	}
	isDrift := m.isDrift(child, c.h.Kind.Annotation())
	if wait := m.driftDelay(child.kind, now); isDrift && wait > 0 {
		return RequeueAfter(wait)
	}
	if err := c.mayAdopt(ctx, child); err != nil {
		return err
	}
	err = c.Client.Apply(ctx, desired, opts...)
	if replaced := child.replaced(err); replaced != nil {
		err = c.applyReplaced(ctx, child, replaced, desired, opts)
	}
	if err != nil {
		return refused(fmt.Errorf("apply %s: %w", child, err))
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.kind)
	m.applied[child.kind] = child.applied
	if isDrift {
		m.driftCorrected(child.kind, now)
	}
	child.diff = fields.Differences(child.fields, fields.Of(desired)) // the answer
	m.mutated[child.kind] = child.mutation()
	return child.mutated()
}

// A child is a desired state that is to be applied, and the live object.
type child struct {
	kind, name string
	owner      *metav1.OwnerReference
	applied    string              // the annotation
	fields     map[string]any      // the desired ones
	live       client.Object       // without a UID when there is none
	diff       []fields.Difference // of the live object
}

// String names the child in messages.
func (c *child) String() string { return c.kind + " " + c.name }

// childOf reads the live state of a child.
func (c children) childOf(ctx context.Context, desired runtime.ApplyConfiguration) (*child, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, err
	}
	obj := unstructured.Unstructured{Object: object}
	owner, kind := metav1.GetControllerOf(&obj), obj.GroupVersionKind()
	if owner == nil {
		return nil, fmt.Errorf("apply %s %s: it names no owner", kind.Kind, obj.GetName())
	}
	live, err := c.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	found := &child{kind: kind.Kind, name: obj.GetName(), owner: owner, applied: obj.GetAnnotations()[c.h.Kind.Annotation()],
		fields: obj.Object, live: live.(client.Object)}
	delete(found.fields, "apiVersion") // not set on objects from a typed client
	delete(found.fields, "kind")
	for _, condition := range []string{"uid", "resourceVersion"} { // conditions of the write, not desired fields
		unstructured.RemoveNestedField(found.fields, "metadata", condition)
	}
	err = c.h.Client.Get(ctx, client.ObjectKeyFromObject(&obj), found.live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get %s: %w", found, err)
	}
	if err == nil {
		found.diff = fields.Differences(found.fields, fields.Of(found.live))
	}
	return found, nil
}

// isDrift reports whether the write of a child corrects a change by another client, and does not follow a change of its
// owner.
func (m *memory) isDrift(child *child, annotation string) bool {
	return child.applied == m.applied[child.kind] || child.applied == child.live.GetAnnotations()[annotation]
}
