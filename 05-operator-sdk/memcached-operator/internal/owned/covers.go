package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sign annotates a wanted child with whose it is and the hash of itself, "UID/hash", and returns it as a
// tree of fields. The hash shows that a field is no longer wanted, which comparing the wanted fields cannot.
// The UID lets a child be known whose owner reference was taken away.
func (k *Keeper) sign(owner client.Object, c *Child) (map[string]any, error) {
	c.meta.OwnerReferences = nil
	c.meta.OwnerReferences = append(c.meta.OwnerReferences, *k.reference(owner))
	c.meta.Annotations = nil
	data, err := json.Marshal(c.want)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	c.meta.Annotations = map[string]string{k.annotation: string(owner.GetUID()) + "/" + hex.EncodeToString(sum[:8])}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(c.want)
}

// restores reports whether to write a child means to undo what somebody else did, and not to follow a
// changed owner.
func (k *Keeper) restores(settled bool, c *Child) bool {
	if c.Live == nil {
		return settled
	}
	return c.Live.GetAnnotations()[k.annotation] == c.meta.Annotations[k.annotation]
}

// covers reports whether live has every field of wanted, with the same value. What else live has belongs
// to others: defaults of the API server, labels, sidecars.
func covers(live client.Object, wanted map[string]any) (bool, error) {
	if live == nil {
		return false, nil
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	for field, value := range wanted {
		if field == "apiVersion" || field == "kind" { // not set on objects from a typed cache
			continue
		}
		if !contained(field, value, have[field]) {
			return false, nil
		}
	}
	return true, nil
}

// sharedLists are the lists to which others may add elements of their own, in any place. All other
// lists are wholly ours.
var sharedLists = []string{"containers", "ownerReferences", "ports", "volumeMounts", "volumes"}

// contained reports whether the value that a field shall have is part of the one that it has.
func contained(field string, want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && contained(key, value, have[key])
		}
		return ok
	case []any:
		have, ok := have.([]any)
		if !slices.Contains(sharedLists, field) {
			return ok && slices.EqualFunc(want, have, func(w, h any) bool { return contained("", w, h) })
		}
		for _, value := range want {
			ok = ok && slices.ContainsFunc(have, func(h any) bool { return contained("", value, h) })
		}
		return ok
	default:
		return reflect.DeepEqual(want, have)
	}
}
