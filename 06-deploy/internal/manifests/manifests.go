// Package manifests reads the objects that are applied to a cluster.
package manifests

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Name is the name of the operator's namespace, service account, Deployment and roles, and the value of the label
// app.kubernetes.io/name on all objects of the operator.
const Name = "myweb-operator"

// Read returns the objects of a YAML stream.
func Read(in io.Reader) (all []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read manifests: %w", err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// Only returns the objects of a kind, typed. A field that the type does not have is an error.
func Only[T any](all []*unstructured.Unstructured, kind string) (some []T, err error) {
	for _, object := range all {
		if object.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed,
			true); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
		}
		some = append(some, typed)
	}
	return some, nil
}
