// Package compare decides whether a live object is as it is desired. An apply that changes nothing is a request all
// the same, and behaviour/10-steady-state allows none.
package compare

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// IsUpToDate reports whether a live object has all desired fields. What else it has belongs to others: defaults of the
// API server, labels, sidecars. A field that is no longer desired shows in the annotation that has the hash of all.
func IsUpToDate(desired map[string]any, live runtime.Object) (bool, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	for field, value := range desired {
		if field == "apiVersion" || field == "kind" { // not set on objects from a typed client
			continue
		}
		if !contains(tree[field], value) {
			return false, nil
		}
	}
	return true, nil
}

// contains reports whether a live value has all of a desired one. Elements of a list may be in any place.
func contains(live, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		live, isMap := live.(map[string]any)
		for key, value := range desired {
			if !contains(live[key], value) {
				return false
			}
		}
		return isMap
	case []any:
		list, _ := live.([]any)
		for _, value := range desired {
			if !slices.ContainsFunc(list, func(element any) bool { return contains(element, value) }) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, desired)
}
