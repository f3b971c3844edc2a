package examine

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi3"
)

// chooseBuiltIn returns the sample among objects of built-in kinds: the only object with annotations, or without CRDs the
// only object.
func (t *target) chooseBuiltIn(all []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	known := slices.DeleteFunc(slices.Clone(all), func(u *unstructured.Unstructured) bool {
		return !scheme.Scheme.Recognizes(u.GroupVersionKind())
	})
	if len(known) > 1 || len(t.kinds) > 0 {
		known = slices.DeleteFunc(known, func(u *unstructured.Unstructured) bool { return len(u.GetAnnotations()) == 0 })
	}
	if len(known) == 1 {
		return known[0], nil
	}
	found := "nothing"
	if len(all) > 0 {
		found = all[0].GetAPIVersion() + " " + all[0].GetKind()
	}
	if len(t.kinds) > 0 {
		return nil, fmt.Errorf("SAMPLE=%s holds no resource of the CRDs: it has %s, and the CRDs are for %s. Check apiVersion "+
			"and kind, and whether CRD= has its CRD", t.Sample, found, t.kindNames())
	}
	return nil, fmt.Errorf("SAMPLE=%s holds no sample: it has %s, and no CRD was given. CRD= is the folder of the operator's "+
		"CustomResourceDefinitions, often config/crd/bases, and MANIFEST= has all manifests of the operator. An operator "+
		"without a CRD needs one object of a built-in kind, with the annotation that the operator acts on; the other objects "+
		"are in NEEDS=", t.Sample, found)
}

// completeBuiltIn gets the resource, the scope and the schema of a sample of a built-in kind from the API server.
func (r *run) completeBuiltIn() error {
	t := r.target
	if !t.builtIn {
		return nil
	}
	kind := t.sample.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("SAMPLE=%s cannot be used: %w", t.Sample, err)
	}
	t.gvr, t.cluster = mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameRoot
	document, err := openapi3.NewRoot(r.fixture.Kube.Discovery().OpenAPIV3()).GVSpecAsMap(kind.GroupVersion())
	if err != nil {
		return fmt.Errorf("read the schema of %s: %w", kind.Kind, err)
	}
	schemas, _, _ := unstructured.NestedMap(document, "components", "schemas")
	t.schema = schemaOf(kind, schemas)
	return storeTexts(t.sample)
}

// storeTexts moves the texts of a Secret to its data, as the API server does.
func storeTexts(u *unstructured.Unstructured) error {
	texts, _, err := unstructured.NestedStringMap(u.Object, "stringData")
	for key, value := range texts {
		err = errors.Join(err, unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data", key))
	}
	delete(u.Object, "stringData")
	return err
}

// schemaOf is the schema of a kind, with the schemas of its parts.
func schemaOf(kind schema.GroupVersionKind, schemas map[string]any) map[string]any {
	for name, one := range schemas {
		one, _ := one.(map[string]any)
		kinds, _ := one["x-kubernetes-group-version-kind"].([]any)
		if slices.ContainsFunc(kinds, func(k any) bool {
			gvk, _ := k.(map[string]any)
			return gvk["group"] == kind.Group && gvk["version"] == kind.Version && gvk["kind"] == kind.Kind
		}) {
			complete, _ := withParts(one, schemas, []string{name}).(map[string]any)
			return complete
		}
	}
	return nil
}

// withParts replaces each reference in a schema with the schema that it names, except one that contains itself: within are
// the names of the schemas around this one.
func withParts(node any, schemas map[string]any, within []string) any {
	switch v := node.(type) {
	case []any:
		all := make([]any, len(v))
		for n, inner := range v {
			all[n] = withParts(inner, schemas, within)
		}
		return all
	case map[string]any:
		whole := map[string]any{}
		for key, inner := range v {
			whole[key] = withParts(inner, schemas, within)
		}
		parts, _ := whole["allOf"].([]any)
		for _, part := range parts {
			part, _ := part.(map[string]any)
			maps.Copy(whole, part)
		}
		reference, _ := v["$ref"].(string)
		if name := strings.TrimPrefix(reference, "#/components/schemas/"); name != "" && !slices.Contains(within, name) {
			named, _ := withParts(schemas[name], schemas, append(slices.Clone(within), name)).(map[string]any)
			maps.Copy(whole, named)
		}
		return whole
	}
	return node
}
