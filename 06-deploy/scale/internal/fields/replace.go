package fields

import (
	"maps"
	"slices"
)

// replaceable are parts that an operator owns as a whole: in each, one field excludes another, as in two ports of one
// name or a volume of two types. An element of a list has the name of its list.
var replaceable = []string{"ports", "volumes", "livenessProbe", "readinessProbe", "startupProbe", "seccompProfile"}

// Replace replaces, in the fields of a live object, the replaceable parts of the desired fields that differ, and nothing
// else: a container also holds what injectors added to it. It reports whether there are any.
func Replace(desired, live map[string]any) bool {
	_, replaced := replaceIn("", desired, live)
	return replaced
}

// replaceIn returns the live value with its replaced parts, and whether there are any.
func replaceIn(field string, desired, live any) (value any, replaced bool) {
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok || slices.Contains(replaceable, field) && len(Differences(desired, live)) == 0 {
			break
		}
		if slices.Contains(replaceable, field) {
			value := maps.Clone(desired)
			if port, ok := live["nodePort"]; ok && value["nodePort"] == nil {
				value["nodePort"] = port // the cluster allocated it, and it is kept
			}
			return value, true
		}
		for key := range desired {
			below, isReplaced := replaceIn(key, desired[key], live[key])
			if isReplaced {
				live[key], replaced = below, true
			}
		}
	case []any:
		live, _ := live.([]any)
		for _, element := range desired {
			if i := Find(field, element, live); i >= 0 {
				below, isReplaced := replaceIn(field, element, live[i])
				live[i], replaced = below, replaced || isReplaced
			}
		}
	}
	return live, replaced
}
