package hardening

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by fault/18-service-edited and fault/18-service-port-added. Somebody who edits the port of a Service from 80
// to 81 edits the key by which an apply merges: it would add port 80 beside 81, both of one name, and is refused
// (kubernetes/kubernetes#118725). So the element is replaced in place, and no other element with it.

// mustReplaceElements reports whether an apply was refused because an element of a list does not fit beside the one of
// ours that somebody edited: two ports of one name, a volume of two types.
func mustReplaceElements(err error) bool {
	duplicate := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "duplicate nodePort")
	return duplicate || apierrors.IsInvalid(err)
}

// hasElements reports whether an element of ours differs.
func (c *child) hasElements() bool {
	for _, d := range c.diff {
		if d.element != "" {
			return true
		}
	}
	return false
}

// replaceElements makes the ports, volumes and probes of ours that differ what they should be. Nothing else is touched:
// a container also holds what injectors added to it. It applies once more when that leaves another difference.
func (c children) replaceElements(ctx context.Context, child *child, desired runtime.ApplyConfiguration,
	opts []client.ApplyOption) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// A resourceVersion that is not the current one is answered 409. A failed "test" would be answered 422, like
	// a patch that the API server refuses for what is in it.
	operations := []operation{{"replace", "/metadata/resourceVersion", child.live.GetResourceVersion()}}
	replaced := map[string]bool{}
	for _, d := range child.diff {
		if d.element == "" || replaced[d.element] {
			continue
		}
		replaced[d.element] = true
		value := maps.Clone(d.desiredElement)
		if port, ok := d.liveElement["nodePort"]; ok && value["nodePort"] == nil {
			value["nodePort"] = port // the cluster allocated it, and it is kept
		}
		operations = append(operations, operation{"replace", d.element, value})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	apply := client.ApplyOptions{}
	for _, o := range opts {
		o.ApplyToApply(&apply)
	}
	err = c.Patch(ctx, child.live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(apply.FieldManager))
	if err != nil {
		return err
	}
	if answer := fieldsOf(child.live); len(differences(child.fields, answer)) == 0 {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(answer, desired)
	}
	return c.Client.Apply(ctx, desired, opts...)
}
