package hardening

import (
	"encoding/json"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Demanded by fault/18-service-edited and fault/18-service-port-added. Somebody who edits the port of a
// Service from 80 to 81 edits the key by which an apply merges: it would add port 80 beside 81, both of one
// name, and is refused. So the element is replaced in place, and no other element with it.

// MustReplaceElements reports whether an apply was refused because an element of a list does not fit beside
// the one of ours that somebody edited: two ports of one name, a volume of two types.
func MustReplaceElements(err error) bool {
	duplicate := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "duplicate nodePort")
	return duplicate || apierrors.IsInvalid(err)
}

// IsNodePortTaken reports whether an apply was refused because another Service has the node port.
func IsNodePortTaken(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated")
}

// ReplaceElements returns a JSON patch that makes the ports, volumes and probes of ours that differ what they
// should be, nil when none differs. It holds only for the version of the object that was compared. Nothing
// else is touched: a container also holds what injectors added to it.
func ReplaceElements(differences []Difference, live metav1.Object) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// A resourceVersion that is not the current one is answered 409. A failed "test" would be answered 422, like
	// a patch that the API server refuses for what is in it.
	patch := []operation{{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}}
	replaced := map[string]bool{}
	for _, d := range differences {
		if d.element == "" || replaced[d.element] {
			continue
		}
		replaced[d.element] = true
		value := maps.Clone(d.desiredElement)
		if port, ok := d.liveElement["nodePort"]; ok && value["nodePort"] == nil {
			value["nodePort"] = port // the cluster allocated it, and it is kept
		}
		patch = append(patch, operation{"replace", d.element, value})
	}
	if len(replaced) == 0 {
		return nil, nil
	}
	return json.Marshal(patch)
}
