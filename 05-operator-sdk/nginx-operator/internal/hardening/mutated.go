package hardening

import "fmt"

// Demanded by the checks of fault/34: an admission policy or a webhook changes what the operator applies, at every
// write. An operator that sends it again never ends, and its resource never gets ready (Kong/kong-operator#522).
// The apply is left out then, and its answer is what there is.

// isMutated reports whether a child still is what became of the last apply of the same desired state.
func (m *memory) isMutated(child *child) bool {
	return len(child.diff) > 0 && m.mutated[child.kind] == child.mutation()
}

// setMutated remembers what became of an apply, nothing when it became what was applied.
func (m *memory) setMutated(child *child) {
	if len(child.diff) > 0 {
		m.mutated[child.kind] = child.mutation()
	} else {
		delete(m.mutated, child.kind)
	}
}

// mutation identifies what became of an apply: it changes with the desired state, and with the fields that differ.
func (c *child) mutation() string {
	text := c.applied
	for _, d := range c.diff {
		text += fmt.Sprintf(" %s=%v", d.path, d.live)
	}
	return text
}
