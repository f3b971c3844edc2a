package hardening

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/06-deploy/scale/internal/fields"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Children decorates an applier. A write that would change nothing is not sent (demanded by behaviour/10-restarted),
// nor is one that an admission policy changed before. A correction of drift may have to wait, an orphan is not adopted,
// an element that another client edited is replaced; a refusal and
// a fight are reported.
func (h *Hardening) Children(next owned.Applier) owned.Applier {
	decorated := next
	decorated.Write = children{next, h}.write
	return decorated
}

type children struct {
	owned.Applier
	h *Hardening
}

func (c children) write(ctx context.Context, observed *owned.Child) error {
	child := c.compare(observed)
	if child.Live.GetUID() != "" && len(child.diff) == 0 { // it is up to date
		return c.fightOver(child)
	}
	m, now := c.h.of(*child.owner.UID), c.h.Clock.Now()
	if len(child.diff) > 0 && child.mutation() == m.mutated[child.Kind] { // another apply would end the same way
		return child.mutated()
	}
	isDrift := m.isDrift(child, c.Kind.Annotation())
	if wait := m.driftDelay(child.Kind, now); isDrift && wait > 0 {
		return c.fight(ctx, child, wait)
	}
	if err := c.mayAdopt(ctx, child); err != nil {
		return err
	}
	err := c.Write(ctx, observed)
	if replaced := child.replaced(err); replaced != nil {
		err = c.writeReplaced(ctx, child, replaced)
	}
	if err != nil {
		return refused(fmt.Errorf("apply %s: %w", child, err))
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	m.applied[child.Kind] = child.applied
	if isDrift {
		m.driftCorrected(child.Kind, now)
	}
	child.diff = fields.Differences(child.fields, fields.Of(child.Live)) // the answer
	m.mutated[child.Kind] = child.mutation()
	return cmp.Or(child.mutated(), c.fightOver(child))
}

// A child is a child of an owner, and what differs.
type child struct {
	*owned.Child
	owner   *metav1ac.OwnerReferenceApplyConfiguration
	applied string              // the annotation
	fields  map[string]any      // the desired ones
	diff    []fields.Difference // of the live object; none without one
}

// String names the child in messages.
func (c *child) String() string { return c.Kind + " " + *c.Meta.Name }

// compare compares the live state of a child with the desired state.
func (c children) compare(observed *owned.Child) *child {
	compared := &child{Child: observed, owner: &observed.Meta.OwnerReferences[0],
		applied: observed.Meta.Annotations[c.Kind.Annotation()], fields: fields.Of(observed.Desired)}
	for _, condition := range []string{"uid", "resourceVersion"} { // conditions of the write, not desired fields
		unstructured.RemoveNestedField(compared.fields, "metadata", condition)
	}
	if observed.Live.GetUID() != "" {
		compared.diff = fields.Differences(compared.fields, fields.Of(observed.Live))
	}
	return compared
}

// isDrift reports whether the write of a child corrects a change by another client, and does not follow a change of its
// owner.
func (m *memory) isDrift(child *child, annotation string) bool {
	return child.applied == m.applied[child.Kind] || child.applied == child.Live.GetAnnotations()[annotation]
}
