package hardening

import (
	"github.com/example/nginx-operator/internal/conditions"
)

// Demanded by TestAMutatedChildIsAppliedOnce: an admission policy or a webhook changes a field that the operator
// sets, at every write. The same write again would have the same result.

// Mutated returns the ConditionError for a child that still differs after the same desired state was applied. It
// returns nil when another write is useful: the desired state changed, or the object did.
func (r *Remembered) Mutated(child, hash string, differences []Difference) error {
	if len(differences) == 0 || r.mutated[child] != hash+" "+Paths(differences) {
		return nil
	}
	return conditions.Errorf(conditions.ReasonChildMutated, "an admission policy or webhook changes %s: %s; exempt this "+
		"object there, then set these fields back or delete the object", child, Paths(differences))
}

// SetMutated remembers how a child differs after its desired state was applied, and returns the result of Mutated.
func (r *Remembered) SetMutated(child, hash string, differences []Difference) error {
	r.mutated[child] = hash + " " + Paths(differences)
	return r.Mutated(child, hash, differences)
}
