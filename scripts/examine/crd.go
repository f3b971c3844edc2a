package examine

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// A servedKind is one version of a kind.
type servedKind struct {
	gvr     schema.GroupVersionResource
	cluster bool           // an object has no namespace, and its children may be in any
	schema  map[string]any // of the whole object
	builtIn bool           // the API server has the kind without a CRD
	// statusless versions have no status subresource: a write of the status is also a write of the spec.
	statusless bool
}

// readCRDs finds the CRDs in the manifests, and in a file or below a folder. It ignores other objects, such as a
// kustomization.
func (t *target) readCRDs() error {
	t.kinds, t.conversions = map[schema.GroupVersionKind]servedKind{}, map[string]map[string]any{}
	if t.CRD == "" { // a sample of a built-in kind needs no CRD
		return t.addCRDs(t.workload.ofKinds("CustomResourceDefinition"), "MANIFEST="+t.Manifest)
	}
	var all []*unstructured.Unstructured
	err := filepath.WalkDir(t.CRD, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isManifest(path) {
			return err
		}
		more, err := fixture.Objects(path)
		all = append(all, more...)
		return err
	})
	if err != nil {
		return fmt.Errorf("CRD=%s cannot be used: %w", t.CRD, err)
	}
	if err := t.addCRDs(all, "CRD="+t.CRD); err != nil || len(t.kinds) > 0 {
		return err
	}
	return fmt.Errorf("CRD=%s holds no CustomResourceDefinition: give in CRD= the folder with the generated files, often "+
		"config/crd/bases (make manifests writes them)", t.CRD)
}

// addCRDs keeps the CRDs among objects of a setting.
func (t *target) addCRDs(all []*unstructured.Unstructured, setting string) error {
	for _, u := range all {
		if u.GetKind() != "CustomResourceDefinition" || len(u.Object) < 3 || u.Object["spec"] == nil {
			continue
		}
		if u.GetAPIVersion() != "apiextensions.k8s.io/v1" {
			return fmt.Errorf("%s cannot be used: the CRD %s has the version %s, which API servers no longer know: write it as "+
				"apiextensions.k8s.io/v1", setting, u.GetName(), u.GetAPIVersion())
		}
		t.addCRD(u)
	}
	return nil
}

// addCRD keeps a CRD. It installs a CRD with a conversion webhook without the webhook, because the webhook's address
// is not known before the cluster runs. The API server never calls the conversion of a CRD with one version, so the
// operator need not serve it.
func (t *target) addCRD(u *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	if strategy, _, _ := unstructured.NestedString(u.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
		service := map[string]any{"name": "webhook-service", "namespace": "system", "path": "/convert"}
		given, _, _ := unstructured.NestedMap(u.Object, "spec", "conversion", "webhook", "clientConfig", "service")
		maps.Copy(service, given)
		if len(versions) > 1 {
			t.conversions[u.GetName()] = service
		}
		unstructured.RemoveNestedField(u.Object, "spec", "conversion")
	}
	t.crds = append(t.crds, u)
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(v, "name")
		schemaOfKind, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
		gv := schema.GroupVersion{Group: group, Version: name}
		_, status, _ := unstructured.NestedMap(v, "subresources", "status")
		t.kinds[gv.WithKind(kind)] = servedKind{gvr: gv.WithResource(plural), cluster: scope == "Cluster",
			schema: schemaOfKind, statusless: !status}
	}
}

// kindNames lists the kinds of the CRDs, for a sentence.
func (t *target) kindNames() string {
	var names []string
	for gvk := range t.kinds {
		names = append(names, gvk.GroupVersion().String()+" "+gvk.Kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// what names the sample's resource as the ledger does.
func (t *target) what() string { return t.gvr.GroupResource().String() }
