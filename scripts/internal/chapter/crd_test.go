package chapter

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/testkit"
)

type rules struct {
	Rules []struct {
		Rule            string
		OptionalOldSelf bool
	} `json:"x-kubernetes-validations"`
}

type schema struct {
	rules
	Properties struct{ Metadata rules }
}

// TestRulesAtTheRootAreForNewObjectsOnly shows the reason on an API server. The CRD of ControllerRings is not ours.
func TestRulesAtTheRootOfAllCRDs(t *testing.T) {
	root, found := filepath.Join("..", "..", ".."), 0
	files, err := filesOf(root)
	testkit.Must(t, err)
	for _, file := range files {
		if filepath.Ext(file) != ".yaml" || strings.HasSuffix(file, "_controllerrings.yaml") {
			continue
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema schema }
				}
			}
		}
		_ = yaml.Unmarshal([]byte(testkit.Read(t, filepath.Join(root, file))), &crd) // a template is not YAML
		for _, version := range crd.Spec.Versions {
			top := version.Schema.OpenAPIV3Schema
			for _, rule := range append(top.Rules, top.Properties.Metadata.Rules...) {
				found++
				if !rule.OptionalOldSelf || !strings.HasPrefix(rule.Rule, "oldSelf.hasValue() || ") {
					t.Errorf("%s: a changed object may break %q: let it begin with oldSelf.hasValue() ||", file, rule.Rule)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d rules", found)
	}
}
