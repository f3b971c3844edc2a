package examine

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// disturb changes or removes one field. The pointer is empty when the API server allows no client to change it.
func (t *trial) disturb(c child, p path) (pointer string, value any, err error) {
	u, pointer, value, err := t.field(c, p)
	if err != nil || pointer == "" {
		return "", nil, err
	}
	patches := []map[string]any{}
	for _, other := range others(value) {
		patches = append(patches, map[string]any{"op": "replace", "path": pointer, "value": other})
	}
	patches = append(patches, map[string]any{"op": "remove", "path": pointer})
	for _, patch := range patches {
		data, err := json.Marshal([]any{patch})
		if err != nil {
			return "", nil, err
		}
		now, err := t.at(c).Patch(t.ctx, c.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: somebody})
		if err == nil && now.GetResourceVersion() != u.GetResourceVersion() && !samePlace(p, now.Object, value) {
			return pointer, value, nil
		}
	}
	return "", nil, nil
}

// field reads a child, and finds the pointer to one of its fields. The pointer is empty when the child does not have
// the field.
func (t *trial) field(c child, p path) (u *unstructured.Unstructured, pointer string, value any, err error) {
	if u, err = t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{}); err != nil {
		return nil, "", nil, err
	}
	pointer, value, _ = p.find(u.Object)
	return u, pointer, value, nil
}

func samePlace(p path, object, value any) bool {
	_, now, ok := p.find(object)
	return ok && text(now) == text(value)
}

// text formats a value for a comparison.
func text(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}

func (t *trial) has(c child, p path, value any) error {
	u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !samePlace(p, u.Object, value) {
		_, now, _ := p.find(u.Object)
		return fmt.Errorf("it is %s, and was %s", t.shown(c, p, now), t.shown(c, p, value))
	}
	return nil
}
