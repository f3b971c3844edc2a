package examine

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Field is a field of an object that a client applied.
type Field struct{ path path }

func (f Field) String() string { return f.path.String() }

// Find returns the field in an object: its JSON pointer and its value.
func (f Field) Find(object *unstructured.Unstructured) (pointer string, value any, ok bool) {
	return f.path.find(object.Object)
}

// Applied returns the fields of an object that clients set by server-side apply, keys of list elements included. Owner
// references count as one field.
func Applied(object *unstructured.Unstructured) (all []Field, err error) {
	for _, m := range object.GetManagedFields() {
		if m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read the managed fields of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		for _, p := range leaves(fields, nil) {
			all = append(all, Field{p})
		}
	}
	return all, nil
}

// Others are values that can replace a value of a field, the most harmless first.
func Others(value any) []any { return others(value) }
