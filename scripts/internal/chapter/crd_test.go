package chapter

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/testkit"
)

type (
	rules struct {
		Rules []struct {
			Rule            string
			OptionalOldSelf bool
		} `json:"x-kubernetes-validations"`
	}
	schema struct {
		rules
		Properties struct{ Metadata rules }
	}
)

// TestRulesAtTheRootAreForNewObjectsOnly shows the reason on an API server. The CRD of ControllerRings is not ours.
func TestRulesAtTheRootOfAllCRDs(t *testing.T) {
	root, found := filepath.Join("..", "..", ".."), 0
	files, err := filesOf(root)
	testkit.Must(t, err)
	for _, file := range files {
		if filepath.Ext(file) != ".yaml" || strings.HasSuffix(file, "_controllerrings.yaml") {
			continue
		}
		for document := range strings.SplitSeq(testkit.Read(t, filepath.Join(root, file)), "\n---\n") {
			var crd struct {
				Spec struct {
					Versions []struct{ Schema struct{ OpenAPIV3Schema schema } }
				}
			}
			if !strings.Contains(document, "kind: CustomResourceDefinition") || yaml.Unmarshal([]byte(document), &crd) != nil {
				continue
			}
			for _, version := range crd.Spec.Versions {
				root := version.Schema.OpenAPIV3Schema
				for _, rule := range append(root.Rules, root.Properties.Metadata.Rules...) {
					found++
					if !rule.OptionalOldSelf || !strings.HasPrefix(rule.Rule, "oldSelf.hasValue() || ") {
						t.Errorf("%s: a changed object may break %q: let it begin with oldSelf.hasValue() ||", file, rule.Rule)
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d rules", found)
	}
}
