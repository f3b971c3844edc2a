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

// Demanded by fault/18-service-edited and fault/18-service-port-added. A user who edits the port of a Service from 80
// to 81 edits the key by which an apply merges. The apply would add port 80 beside 81, both with the same name, so the
// API server refuses it (kubernetes/kubernetes#118725). So the operator replaces this element in place, and no other
// element.

// mustReplaceElements reports whether an apply was refused because a desired element of a list does not fit beside the
// live element that another client edited: two ports of one name, a volume of two types.
func mustReplaceElements(err error) bool {
	duplicate := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "duplicate nodePort")
	return duplicate || apierrors.IsInvalid(err)
}

// hasElements reports whether an element of the operator differs.
func (c *child) hasElements() bool {
	for _, d := range c.diff {
		if d.element != "" {
			return true
		}
	}
	return false
}

// replaceElements replaces the operator's ports, volumes and probes that differ. It changes nothing else: a container
// also holds what injectors added to it. It applies once more when another difference remains.
func (c children) replaceElements(ctx context.Context, child *child, desired runtime.ApplyConfiguration,
	opts []client.ApplyOption) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// The API server answers 409 to an old resourceVersion. It would answer 422 to a failed "test", as it does to a
	// patch with invalid content.
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
