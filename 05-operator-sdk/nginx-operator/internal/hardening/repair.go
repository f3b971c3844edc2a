package hardening

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestAnEditedMergeKeyIsRestoredInPlace: see elements.go.

// Repair corrects list elements that the operator owns after an apply was refused with err. It reports whether it did,
// so that the apply can be sent once more. live is the object that differs; afterwards it has its new state. When the
// API server refuses the repair, err becomes that error.
func Repair(ctx context.Context, c client.Client, fieldOwner client.FieldOwner, live client.Object,
	differences []Difference, err *error) bool {
	if live == nil || !MustReplaceElements(*err) {
		return false
	}
	patch, patchErr := ReplaceElements(differences, live)
	if patchErr != nil || patch == nil {
		return false
	}
	*err = c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), fieldOwner)
	return *err == nil
}
