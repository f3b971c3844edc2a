package examine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A variation is one change of the sample that its schema allows.
type variation struct {
	path  []string // from the root of the object
	value any      // nil removes the field
	was   any      // nil when the field was not set
	data  bool     // the value is data in base64, as that of a Secret
}

// name is the path of the field.
func (v variation) name() string { return strings.Join(v.path, ".") }

func (v variation) String() string {
	switch data, _ := json.Marshal(v.value); {
	case v.value == nil:
		return v.name() + " is removed"
	case v.data:
		return v.name() + " changes"
	default:
		return fmt.Sprintf("%s becomes %s", v.name(), data)
	}
}

// root is the path of the part of the sample that belongs to its user: spec, or an annotation.
func (v variation) root() []string {
	if v.path[0] == "metadata" {
		return v.path
	}
	return v.path[:1]
}

// at is the part of an object that the change is about, as text.
func (v variation) at(object *unstructured.Unstructured) string {
	part, _, _ := unstructured.NestedFieldNoCopy(object.Object, v.root()...)
	return text(part)
}

// A values function chooses values for a field, which was nil when the field is not set.
type values func(field map[string]any, was any) []any

// variations returns the changes of the sample, field by field, to values that a function chooses, and the names of the
// fields that it looked at. A custom resource belongs to the operator as a whole. An object of a built-in kind has many
// fields that are not about the operator: there only the annotations, the labels and the fields count that are set.
func (t *target) variations(choose values) (all []variation, names []string) {
	properties, _, _ := unstructured.NestedMap(t.schema, "properties")
	required, _, _ := unstructured.NestedStringSlice(t.schema, "required")
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(properties, name)
	}
	if t.builtIn {
		properties["metadata"] = map[string]any{"required": []any{"annotations", "labels"}, "properties": map[string]any{
			"annotations": textsOf(t.sample.GetAnnotations()), "labels": textsOf(t.sample.GetLabels())}}
	}
	root := map[string]any{"properties": properties}
	_ = unstructured.SetNestedStringSlice(root, append(required, "metadata", "spec"), "required")
	visitFields(nil, root, t.sample.Object, func(path []string, field map[string]any, was any, removable bool) {
		v, added := variation{path: path, was: was, data: field["format"] == "byte"}, field[isNew] != nil
		if t.builtIn && was == nil && !added {
			return
		}
		if !added && field["properties"] == nil {
			names = append(names, v.name())
		}
		for _, v.value = range choose(field, was) {
			all = append(all, v)
		}
		if v.value = nil; was != nil && removable {
			all = append(all, v)
		}
	})
	return all, names
}

// textsOf is the schema of some texts.
func textsOf(texts map[string]string) map[string]any {
	properties := map[string]any{}
	for key := range texts {
		properties[key] = map[string]any{"type": "string"}
	}
	return map[string]any{"properties": properties}
}

// visitFields visits each field that the schema of an object has, in the order of the names; at is the path of the object.
func visitFields(at []string, schema, object map[string]any,
	visit func(path []string, field map[string]any, was any, removable bool)) {
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	required, _, _ := unstructured.NestedStringSlice(schema, "required")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field, _ := properties[name].(map[string]any)
		path := append(slices.Clone(at), name)
		was := object[name]
		inner, _ := was.(map[string]any)
		entries, _ := field["additionalProperties"].(map[string]any)
		switch {
		case inner != nil && field["properties"] != nil:
			visitFields(path, field, inner, visit)
		case inner != nil && entries != nil:
			visitFields(path, entriesOf(entries, inner), inner, visit)
		}
		visit(path, field, was, !slices.Contains(required, name))
	}
}

// isNew marks the schema of an entry that a map does not have.
const isNew = "x-examine-new"

// entriesOf is the schema of the entries of a map, and of one new text.
func entriesOf(schema, object map[string]any) map[string]any {
	properties := map[string]any{}
	for key := range object {
		properties[key] = schema
	}
	if schema["type"] == "string" {
		added := maps.Clone(schema)
		added[isNew] = true
		properties["examine"] = added
	}
	return map[string]any{"properties": properties}
}

// usual returns at most two other values for a field. It returns none for lists and unset free texts, because it knows
// no sensible value for them.
func usual(field map[string]any, was any) (all []any) {
	add := func(value any) {
		if fmt.Sprint(value) != fmt.Sprint(was) && !slices.Contains(all, value) && len(all) < 2 {
			all = append(all, value)
		}
	}
	if choices, _ := field["enum"].([]any); len(choices) > 0 {
		for _, choice := range choices {
			add(choice)
		}
		return all
	}
	switch field["type"] {
	case "boolean":
		now, _ := was.(bool)
		add(!now)
	case "integer":
		low, hasLow := integer(field["minimum"])
		high, hasHigh := integer(field["maximum"])
		now, set := integer(was)
		if hasHigh {
			add(min(high, max(now+1, low+1))) // not the bound itself: 65535 pods are too many
		} else if set {
			add(now + 1)
		}
		if hasLow {
			add(low)
		}
	case "string":
		text, set := was.(string)
		switch {
		case !set && field[isNew] == nil || field["pattern"] != nil:
		case field["format"] == "byte":
			add(base64.StdEncoding.EncodeToString([]byte(decodedData(text) + "x")))
		case field["format"] == nil:
			add(text + "x")
		}
	}
	return all
}

func integer(value any) (n int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// patch is the JSON merge patch for a value; nil removes the field.
func (v variation) patch(value any) ([]byte, error) {
	tree := value
	for _, name := range slices.Backward(v.path) {
		tree = map[string]any{name: tree}
	}
	return json.Marshal(tree)
}

// in returns an object with the change.
func (v variation) in(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	if v.value == nil {
		unstructured.RemoveNestedField(object.Object, v.path...)
		return object, nil
	}
	return object, unstructured.SetNestedField(object.Object, v.value, v.path...)
}
