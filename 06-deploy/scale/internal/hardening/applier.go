package hardening

import (
	"cmp"
	"context"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/operator-workshop/06-deploy/scale/internal/fields"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Applier decorates an applier. A write that an admission policy changed before is not sent again. A correction of drift
// may have to wait, an orphan is not adopted, an element that another client edited is replaced; a refusal and a fight are
// reported.
func (h *Hardening) Applier(next owned.Applier) owned.Applier { return hardenedApplier{h, next} }

type hardenedApplier struct {
	*Hardening
	next owned.Applier
}

// Apply implements owned.Applier.
func (a hardenedApplier) Apply(ctx context.Context, child *owned.Child) (owned.Object, error) {
	c := a.compare(child)
	m, now := a.of(*c.owner.UID), a.Clock.Now()
	if c.Live.GetUID() != "" && len(c.diff) == 0 { // it is up to date
		m.refusals.Forget(c.Kind)
		return nil, a.fightOver(c)
	}
	if len(c.diff) > 0 && c.mutation() == m.mutated[c.Kind] { // another apply would end the same way
		return nil, c.mutated()
	}
	// Drift is a change by another client: the owner has not changed since the last apply, of this process or of one before it.
	isDrift := c.applied == m.applied[c.Kind] || c.applied == c.Live.GetAnnotations()[a.Kind.Annotation()]
	if wait := m.driftDelay(c.Kind, now); isDrift && wait > 0 {
		return nil, a.fight(ctx, c, wait)
	}
	if err := a.mayAdopt(ctx, c); err != nil {
		return nil, err
	}
	live, err := a.next.Apply(ctx, child)
	if err != nil {
		live, err = a.applyReplaced(ctx, c, err)
	}
	if err != nil {
		return nil, m.refused(c.Kind, err)
	}
	m.refusals.Forget(c.Kind)
	m.applied[c.Kind] = c.applied
	if isDrift {
		m.driftCorrected(c.Kind, now)
	}
	c.diff = fields.Differences(c.fields, fields.Of(live))
	m.mutated[c.Kind] = c.mutation()
	return live, cmp.Or(c.mutated(), a.fightOver(c))
}

// A comparison is a child of an owner, and what differs.
type comparison struct {
	*owned.Child
	owner   *metav1ac.OwnerReferenceApplyConfiguration
	applied string              // the annotation
	fields  map[string]any      // the desired ones
	diff    []fields.Difference // of the live object; none without one
}

// String names the child in messages.
func (c *comparison) String() string { return c.Kind + " " + *c.Meta.Name }

// compare compares the live state of a child with the desired state.
func (a hardenedApplier) compare(child *owned.Child) *comparison {
	c := &comparison{Child: child, owner: &child.Meta.OwnerReferences[0],
		applied: child.Meta.Annotations[a.Kind.Annotation()], fields: fields.Of(child.Desired)}
	if child.Live.GetUID() != "" {
		c.diff = fields.Differences(c.fields, fields.Of(child.Live))
	}
	return c
}
