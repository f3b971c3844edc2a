package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type crd = apiextensionsv1.CustomResourceDefinition

// describe names what the operator owns. Kind, display name and resources are the base's, written by hand;
// the fields of spec and status come from the schema, which came from the Go types.
func describe(csv *v1alpha1.ClusterServiceVersion, owned []crd) error {
	for _, definition := range owned {
		version := definition.Spec.Versions[0]
		i := slices.IndexFunc(csv.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool {
			return d.Name == definition.Name && d.Version == version.Name
		})
		if i < 0 {
			return fmt.Errorf("the ClusterServiceVersion's base does not say that it owns %s, version %s: add it to "+
				"spec.customresourcedefinitions.owned", definition.Name, version.Name)
		}
		d, schema := &csv.Spec.CustomResourceDefinitions.Owned[i], version.Schema.OpenAPIV3Schema
		d.SpecDescriptors, d.StatusDescriptors = nil, nil
		for _, field := range fields("", schema.Properties["spec"]) {
			d.SpecDescriptors = append(d.SpecDescriptors,
				v1alpha1.SpecDescriptor{Path: field.path, DisplayName: field.name, Description: field.text})
		}
		for _, field := range fields("", schema.Properties["status"]) {
			d.StatusDescriptors = append(d.StatusDescriptors,
				v1alpha1.StatusDescriptor{Path: field.path, DisplayName: field.name, Description: field.text})
		}
	}
	return nil
}

type field struct{ path, name, text string }

// fields are the described leaves of a schema, in order of their paths.
func fields(prefix string, schema apiextensionsv1.JSONSchemaProps) (all []field) {
	for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[key]
		if property.Type == "object" && len(property.Properties) > 0 {
			all = append(all, fields(prefix+key+".", property)...)
			continue
		}
		all = append(all, field{prefix + key, title(key), strings.Join(strings.Fields(property.Description), " ")})
	}
	return all
}

// title makes a display name of a field's: "readyReplicas" is "Ready Replicas".
func title(key string) string {
	var words strings.Builder
	for i, r := range key {
		if i == 0 {
			r = unicode.ToUpper(r)
		} else if unicode.IsUpper(r) {
			words.WriteRune(' ')
		}
		words.WriteRune(r)
	}
	return words.String()
}
