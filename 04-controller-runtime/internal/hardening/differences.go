package hardening

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Demanded by the checks of behaviour/10: an apply that changes nothing is a request all the same.
//
// client-go's ExtractDeployment returns the fields that a field manager owns, which can be compared with the
// desired ones as well. It needs managed fields in the cache, 2,124 bytes for one Deployment, takes three
// times as long and allocates 227 KB instead of 64 KB (BenchmarkIsUpToDate in chapter 04); and messages still
// need the paths of the fields that differ.

// A Difference is a field whose live value is not the desired one.
type Difference struct {
	// Path names the field as a reader would: spec.template.spec.containers[nginx].image.
	Path string
	// live is the value of the field.
	live any
	// element is the JSON pointer of the replaceable part that holds the field, and desiredElement and
	// liveElement are its values. They are empty for other fields.
	element                     string
	desiredElement, liveElement map[string]any
}

// mergeKeys are the lists to which others may add elements of their own, in any place, and the field that
// identifies an element. All other lists are ours as a whole.
var mergeKeys = map[string]string{
	"containers": "name", "volumes": "name", "ports": "name", "volumeMounts": "mountPath", "ownerReferences": "uid",
}

// replaceable are parts that are ours as a whole: in each, one field excludes another. An element of a list
// goes by the name of its list.
var replaceable = []string{"ports", "volumes", "readinessProbe"}

// Differences returns where a live object differs from desired fields, nothing when it is up to date. What
// else the live object has belongs to others: defaults of the API server, labels, sidecars.
func Differences(desired map[string]any, live runtime.Object) ([]Difference, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	var w walker
	for field, value := range desired {
		if field != "apiVersion" && field != "kind" { // not set on objects from a typed cache
			w.compare(Difference{Path: field}, "/"+field, field, value, tree[field])
		}
	}
	slices.SortFunc(w.found, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return w.found, nil
}

// Paths joins the paths of differences, for messages.
func Paths(differences []Difference) string {
	var paths []string
	for _, d := range differences {
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, ", ")
}

// jsonPointer escapes a key, as RFC 6901 says.
var jsonPointer = strings.NewReplacer("~", "~0", "/", "~1")

// Identify returns a text that changes when a path or a live value does.
func Identify(differences []Difference) string {
	var text strings.Builder
	for _, d := range differences {
		fmt.Fprintf(&text, " %s=%v", d.Path, d.live)
	}
	return text.String()
}

type walker struct{ found []Difference }

// compare adds the differences between the values of one field. at is where they are found, and pointer the
// same as a JSON pointer into the live object.
func (w *walker) compare(at Difference, pointer, field string, desired, live any) {
	switch desired := desired.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			if slices.Contains(replaceable, field) {
				at.element, at.desiredElement, at.liveElement = pointer, desired, live
			}
			for key, value := range desired {
				below := at
				below.Path += pathOf(key)
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

// compareElement compares one element of a list with the live one that has the same key.
func (w *walker) compareElement(at Difference, pointer, field string, desired map[string]any, list []any) {
	key := mergeKeys[field]
	at.Path += fmt.Sprintf("[%v]", desired[key])
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
	w.compare(Difference{}, "", "", desired, live)
	return len(w.found) == 0
}

// pathOf is a key in a path: keys of labels and annotations hold dots, so they stand in brackets.
func pathOf(key string) string {
	if strings.ContainsAny(key, "./") {
		return "[" + key + "]"
	}
	return "." + key
}
