// Package fields compares the fields that an operator desires with those of a live object.
package fields

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Of returns an object or an apply configuration as a tree of fields, without apiVersion and kind: objects from a typed
// client do not have these two.
func Of(obj any) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	utilruntime.Must(err) // both are made of texts, numbers, maps and lists
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return fields
}

// A Difference is a field whose live value is not the desired value.
type Difference struct {
	Path Path
	// Live is the value in the live object, nil when there is none.
	Live any
}

// A Path leads to a field, by the names of fields and by elements of lists, such as [nginx].
type Path []string

// String names the field as a reader would: spec.template.spec.containers[nginx].image.
func (p Path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// mergeKeys are the lists to which other clients may add elements, in any place, and the field that identifies an
// element. The operator owns all other lists as a whole.
var mergeKeys = map[string]string{
	"containers": "name", "volumes": "name", "ports": "name", "volumeMounts": "mountPath", "ownerReferences": "uid",
}

// Differences returns the differences of a live object, none when it is up to date. All other fields of the live object
// belong to others: defaults of the API server, labels, sidecars.
func Differences(desired, live map[string]any) []Difference {
	return compare(nil, "", desired, live)
}

func compare(path Path, field string, desired, live any) (found []Difference) {
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(desired)) {
			found = append(found, compare(append(slices.Clip(path), key), key, desired[key], live[key])...)
		}
		return found
	case []any:
		live, _ := live.([]any)
		if mergeKeys[field] == "" {
			if slices.EqualFunc(desired, live, func(d, l any) bool { return compare(nil, "", d, l) == nil }) {
				return nil
			}
			break
		}
		for _, element := range desired {
			at := append(slices.Clip(path), fmt.Sprintf("[%v]", element.(map[string]any)[mergeKeys[field]]))
			if i := Find(field, element, live); i >= 0 {
				found = append(found, compare(at, "", element, live[i])...)
			} else {
				found = append(found, Difference{Path: at})
			}
		}
		return found
	}
	if reflect.DeepEqual(desired, live) {
		return nil
	}
	return []Difference{{path, live}}
}

// Find returns the index of the live element that a desired element of a list describes, -1 when there is none, or when
// elements of this list have no name.
func Find(list string, desired any, live []any) int {
	key := mergeKeys[list]
	if key == "" {
		return -1
	}
	value := desired.(map[string]any)[key]
	return slices.IndexFunc(live, func(other any) bool { return other.(map[string]any)[key] == value })
}
