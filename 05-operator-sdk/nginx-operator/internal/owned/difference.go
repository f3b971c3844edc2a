package owned

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// difference returns the path of a field whose live value is not the desired value, "" when the child is up to date.
// It ignores other fields, which belong to others: defaults of the API server, labels, sidecars.
func (c *Child) difference() string {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Live)
	utilruntime.Must(err) // an object of a typed client can be converted
	return strings.TrimPrefix(difference("", "", c.fields, live), ".")
}

// mergeKeys are the lists to which other clients may add elements, in any place, and the field that identifies an
// element. All other lists are ours as a whole.
var mergeKeys = map[string]string{
	"containers": "name", "volumes": "name", "ports": "name", "volumeMounts": "mountPath", "ownerReferences": "uid",
}

func difference(path, field string, desired, live any) string {
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(desired)) {
			if found := difference(path+"."+key, key, desired[key], live[key]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		live, _ := live.([]any)
		key := mergeKeys[field]
		if key == "" && len(live) != len(desired) {
			return path
		}
		for i, element := range desired {
			if key == "" {
				if difference(path, "", element, live[i]) != "" {
					return path
				}
				continue
			}
			value := element.(map[string]any)[key]
			j := slices.IndexFunc(live, func(other any) bool { return other.(map[string]any)[key] == value })
			at := fmt.Sprintf("%s[%v]", path, value)
			if j < 0 {
				return at
			}
			if found := difference(at, "", element, live[j]); found != "" {
				return found
			}
		}
		return ""
	}
	if reflect.DeepEqual(desired, live) {
		return ""
	}
	return path
}
