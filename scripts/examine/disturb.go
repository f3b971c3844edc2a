package examine

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// disturb changes or removes one field. The pointer is empty when the API server allows no client to change it.
func (t *trial) disturb(c child, p path) (pointer string, value any, err error) {
	pointer, value, _, err = t.change(c, p, metav1.PatchOptions{FieldManager: somebody},
		map[string]any{"op": "remove"})
	return pointer, value, err
}

// change replaces the value of a field by other values, and then tries the last operations, until the API server accepts
// one. It returns the value of before and the new value. The pointer is empty when the child does not have the field, or
// no operation changes it.
func (t *trial) change(c child, p path, options metav1.PatchOptions, last ...map[string]any) (pointer string,
	was, other any, err error) {
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return "", nil, nil, err
	}
	if pointer, was, _ = p.find(u.Object); pointer == "" {
		return "", nil, nil, nil
	}
	var operations []map[string]any
	for _, value := range others(was) {
		operations = append(operations, map[string]any{"op": "replace", "value": value})
	}
	for _, o := range append(operations, last...) {
		o["path"] = pointer
		data, err := json.Marshal([]any{o})
		if err != nil {
			return "", nil, nil, err
		}
		now, err := t.at(c).Patch(t.Ctx, c.Name, types.JSONPatchType, data, options)
		if err == nil && !samePlace(p, now.Object, was) {
			return pointer, was, o["value"], nil
		}
	}
	return "", nil, nil, nil
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
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !samePlace(p, u.Object, value) {
		_, now, _ := p.find(u.Object)
		return fmt.Errorf("it is %s, and was %s", t.shown(c, p, now), t.shown(c, p, value))
	}
	return nil
}
