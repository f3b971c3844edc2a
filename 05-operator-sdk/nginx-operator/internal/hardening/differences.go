package hardening

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Demanded by the checks of fault/34 and fault/18: hardening must know which fields an admission policy changes, and
// which element of a list another client edited.

// A difference is a field whose live value is not the desired value.
type difference struct {
	// path names the field as a reader would: spec.template.spec.containers[nginx].image.
	path string
	// live is the value of the field.
	live any
	// element is the JSON pointer of the replaceable part that holds the field, and desiredElement and
	// liveElement are its values. They are empty for other fields.
	element                     string
	desiredElement, liveElement map[string]any
}

// mergeKeys are the lists to which other clients may add elements, in any place, and the field that identifies an
// element. The operator owns all other lists as a whole.
var mergeKeys = map[string]string{
	"containers": "name", "volumes": "name", "ports": "name", "volumeMounts": "mountPath", "ownerReferences": "uid",
}

// replaceable are parts that the operator owns as a whole: in each, one field excludes another. An element of a list
// has the name of its list.
var replaceable = []string{"ports", "volumes", "readinessProbe"}

// differences returns where a live object differs from desired fields, nothing when it is up to date. All other fields
// of the live object belong to others: defaults of the API server, labels, sidecars.
func differences(desired, live map[string]any) []difference {
	var w walker
	for field, value := range desired {
		if field != "apiVersion" && field != "kind" { // not set on objects from a typed cache
			w.compare(difference{path: field}, "/"+field, field, value, live[field])
		}
	}
	slices.SortFunc(w.found, func(a, b difference) int { return strings.Compare(a.path, b.path) })
	return w.found
}

// jsonPointer escapes a key, as RFC 6901 says.
var jsonPointer = strings.NewReplacer("~", "~0", "/", "~1")

type walker struct{ found []difference }

// compare adds the differences between the values of one field. at is their place, and pointer is the same place as a
// JSON pointer into the live object.
func (w *walker) compare(at difference, pointer, field string, desired, live any) {
	switch desired := desired.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			if slices.Contains(replaceable, field) {
				at.element, at.desiredElement, at.liveElement = pointer, desired, live
			}
			for key, value := range desired {
				below := at
				below.path += pathOf(key)
				w.compare(below, pointer+"/"+jsonPointer.Replace(key), key, value, live[key])
			}
			return
		}
	case []any:
		live, ok := live.([]any)
		if key := mergeKeys[field]; ok && key != "" {
			for _, value := range desired {
				w.compareElement(at, pointer, field, value.(map[string]any), live)
			}
			return
		}
		if ok && slices.EqualFunc(desired, live, isSubset) {
			return
		}
	default:
		if reflect.DeepEqual(desired, live) {
			return
		}
	}
	at.live = live
	w.found = append(w.found, at)
}

// compareElement compares one element of a list with the live element that has the same key.
func (w *walker) compareElement(at difference, pointer, field string, desired map[string]any, list []any) {
	key := mergeKeys[field]
	at.path += fmt.Sprintf("[%v]", desired[key])
	i := slices.IndexFunc(list, func(live any) bool {
		element, ok := live.(map[string]any)
		return ok && element[key] == desired[key]
	})
	if i < 0 {
		w.found = append(w.found, at)
		return
	}
	w.compare(at, fmt.Sprintf("%s/%d", pointer, i), field, desired, list[i])
}

func isSubset(desired, live any) bool {
	var w walker
	w.compare(difference{}, "", "", desired, live)
	return len(w.found) == 0
}

// pathOf returns a key as part of a path: keys of labels and annotations contain dots, so they are in brackets.
func pathOf(key string) string {
	if strings.ContainsAny(key, "./") {
		return "[" + key + "]"
	}
	return "." + key
}
