package examine

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// A crdVersion is one version of a kind.
type crdVersion struct {
	gvr     schema.GroupVersionResource
	cluster bool
	spec    map[string]any // the schema of spec
}

// readCRDs finds the CRDs in a file or below a folder. Whatever else is there, such as a kustomization, is left out.
func (t *target) readCRDs() error {
	t.kinds = map[schema.GroupVersionKind]crdVersion{}
	err := filepath.WalkDir(t.CRD, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		all, err := fixture.Objects(path)
		if err != nil {
			return err
		}
		for _, u := range all {
			if u.GetKind() != "CustomResourceDefinition" || len(u.Object) < 3 || u.Object["spec"] == nil {
				continue
			}
			if u.GetAPIVersion() != "apiextensions.k8s.io/v1" {
				return fmt.Errorf("the CRD %s has the version %s, which API servers no longer know: write it as "+
					"apiextensions.k8s.io/v1",
					u.GetName(), u.GetAPIVersion())
			}
			if strategy, _, _ := unstructured.NestedString(u.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
				return fmt.Errorf("the CRD %s converts its versions by a webhook, which is not served here: "+
					"give a copy of the CRD without spec.conversion", u.GetName())
			}
			t.addCRD(path, u)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("CRD=%s cannot be used: %w", t.CRD, err)
	}
	if len(t.kinds) == 0 {
		return fmt.Errorf("CRD=%s holds no CustomResourceDefinition: give the folder with the generated files, often "+
			"config/crd/bases (make manifests writes them)", t.CRD)
	}
	return nil
}

func (t *target) addCRD(file string, u *unstructured.Unstructured) {
	if !slices.Contains(t.crds, file) {
		t.crds = append(t.crds, file)
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(v, "name")
		spec, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "spec")
		gv := schema.GroupVersion{Group: group, Version: name}
		t.kinds[gv.WithKind(kind)] = crdVersion{gvr: gv.WithResource(plural), cluster: scope == "Cluster", spec: spec}
	}
}

// kindNames are the kinds of the CRDs, for a sentence.
func (t *target) kindNames() string {
	var names []string
	for gvk := range t.kinds {
		names = append(names, gvk.GroupVersion().String()+" "+gvk.Kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// what is the sample's resource as the ledger names it.
func (t *target) what() string { return t.gvr.Resource + "." + t.gvr.Group }
