package hardening

import (
	"fmt"

	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by the checks of fault/34: an admission policy or a webhook changes what the operator applies, at every
// write. An operator that applies again never stops, and its resource never gets ready (Kong/kong-operator#522). So the
// decorator omits the apply, and reports the field.

// mutated returns the error of a child that differs from the applied state, nil when it is up to date.
func (c *comparison) mutated() error {
	if len(c.diff) == 0 {
		return nil
	}
	return owned.Errorf(owned.ReasonChildMutated, "%s: an admission policy or a webhook changes %s: exempt the object or "+
		"the user of the operator from it, then delete the object, which will be made again", c, c.diff[0].Path)
}

// mutation identifies the result of an apply: it changes with the desired state, and with the fields that differ. It is
// empty when none differs.
func (c *comparison) mutation() (text string) {
	for _, d := range c.diff {
		text += fmt.Sprintf("%s %s=%v ", c.applied, d.Path, d.Live)
	}
	return text
}
