package examine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A variation is one change of the sample's spec that the schema allows.
type variation struct {
	path  []string
	value any // nil removes the field
	was   any // nil when the field was not set
}

// name is the path of the field.
func (v variation) name() string { return "spec." + strings.Join(v.path, ".") }

func (v variation) String() string {
	name := v.name()
	if v.value == nil {
		return name + " is removed"
	}
	data, _ := json.Marshal(v.value)
	return fmt.Sprintf("%s becomes %s", name, data)
}

// variations returns changes of a spec, field by field, to values that a function chooses; at is the path of a part.
func variations(at []string, schema, spec map[string]any, values func(field map[string]any, was any) []any) (
	all []variation) {
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	required, _, _ := unstructured.NestedStringSlice(schema, "required")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field, _ := properties[name].(map[string]any)
		path := append(slices.Clone(at), name)
		was, set := spec[name]
		if inner, ok := was.(map[string]any); ok && field["properties"] != nil {
			all = append(all, variations(path, field, inner, values)...)
		}
		for _, value := range values(field, was) {
			all = append(all, variation{path, value, was})
		}
		if set && !slices.Contains(required, name) {
			all = append(all, variation{path, nil, was})
		}
	}
	return all
}

// usual returns at most two other values for a field. It returns none for lists and unset free strings, because it knows
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
		if set && field["format"] == nil && field["pattern"] == nil {
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
	for _, name := range slices.Backward(append([]string{"spec"}, v.path...)) {
		tree = map[string]any{name: tree}
	}
	return json.Marshal(tree)
}
