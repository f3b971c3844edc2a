package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

// The page applies the steps one after another, and shows what each adds. These tests are about what a step keeps.

// Each step keeps the schema of the step before, except descriptions and columns. The contract
// adds names to step 6 and changes nothing else.
func TestEachStepKeepsWhatTheOneBeforeSays(t *testing.T) {
	steps := append(files(t, "steps/*.yaml"), contract)
	for i := 1; i < len(steps); i++ {
		before, after := readObject(t, steps[i-1]), readObject(t, steps[i])
		if err := checkKept("", before.Object, after.Object); err != nil {
			t.Errorf("from %s to %s: %v", steps[i-1], steps[i], err)
		}
	}
	last := readObject(t, steps[len(steps)-2])
	names := last.Object["spec"].(map[string]any)["names"].(map[string]any)
	names["shortNames"], names["categories"] = []any{"web"}, []any{"all"}
	if diff := cmp.Diff(last.Object, readObject(t, contract).Object); diff != "" {
		t.Errorf("step 6 with names differs from the contract (-step 6 +contract):\n%s", diff)
	}
}

// Each field of a schema needs a type. Exercise 01.1 shows that each version needs a schema.
func TestASchemaIsStructural(t *testing.T) {
	crd := readObject(t, "steps/01-minimal.yaml")
	crd.SetName("others.example.com")
	crd.Object["spec"].(map[string]any)["group"] = "example.com"
	crd.Object["spec"].(map[string]any)["names"] = map[string]any{"plural": "others", "kind": "Other"}
	version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": map[string]any{}}}}
	err := newClient(t, server).Create(t.Context(), crd, client.DryRunAll)
	if err := checkRefused(err, "spec.validation.openAPIV3Schema.properties[spec].type",
		"must not be empty for specified object fields"); err != nil {
		t.Error(err)
	}
}

// Objects that an older schema stored keep values that a rule forbids now, until a client changes these values. A
// default reaches them without a write.
func TestStoredObjectsMeetNewRules(t *testing.T) {
	c := newClient(t, testenv.NewAPIServer(t))
	applyCRD(t, c, "steps/03-columns.yaml")
	for name, spec := range map[string]map[string]any{
		"odd":      {"image": "Odd Image", "nodePortNumber": int64(80), "pageContentHtml": overlongPage("o")},
		"odd.name": {"image": "nginx"},
	} {
		eventually(t, func() error { return c.Create(t.Context(), newMyWeb(name, spec)) })
	}
	before := get(t, c, "odd").GetResourceVersion()
	applyCRD(t, c, "steps/05-cel.yaml")
	eventually(t, func() error {
		if got, _, _ := unstructured.NestedInt64(get(t, c, "odd").Object, "spec", "replicas"); got != 1 {
			return fmt.Errorf("replicas = %d, want the default 1", got)
		}
		return nil
	})
	if after := get(t, c, "odd").GetResourceVersion(); after != before {
		t.Errorf("resourceVersion went from %s to %s, want no write: the default is filled in on reading", before, after)
	}
	if err := c.Patch(t.Context(), get(t, c, "odd"), mergePatch(`{"spec":{"replicas":2}}`)); err != nil {
		t.Errorf("change another field: %v", err)
	}
	for name, test := range map[string]struct{ web, patch, field, sentence string }{
		"another odd image": {"odd", `{"spec":{"image":"Another Odd Image"}}`, "spec.image", "must be an image reference"},
		"another overlong page": {"odd", fmt.Sprintf(`{"spec":{"pageContentHtml":%q}}`, overlongPage("p")),
			"spec.pageContentHtml", "may not be more than"},
		// The rule for the name is on the whole object, and an update always changes some field of it.
		"another field beside an odd name": {"odd.name", `{"spec":{"replicas":2}}`, "metadata", "metadata.name must have"},
	} {
		err := c.Patch(t.Context(), get(t, c, test.web), mergePatch(test.patch))
		if err := checkRefused(err, test.field, test.sentence); err != nil {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}

// overlongPage is a page that an older schema without limits stored.
func overlongPage(char string) string { return strings.Repeat(char, 131072) }

// applyCRD does what kubectl apply does and waits until the API server serves the kind.
func applyCRD(t *testing.T, c client.Client, path string) {
	t.Helper()
	crd := readObject(t, path)
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("steps"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, cond := range conditions {
			if cond := cond.(map[string]any); cond["type"] == "Established" && cond["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("not established: %v", conditions)
	})
}

// checkKept returns nil when after has every value of before.
func checkKept(path string, before, after any) error {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		for key, value := range before {
			if key == "description" || key == "additionalPrinterColumns" {
				continue
			}
			if err := checkKept(path+"."+key, value, after[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		after, _ := after.([]any)
		if len(before) != len(after) {
			return fmt.Errorf("%s was %v and is %v", path, before, after)
		}
		for i := range before {
			if err := checkKept(fmt.Sprintf("%s[%d]", path, i), before[i], after[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !cmp.Equal(before, after) {
		return fmt.Errorf("%s was %v and is %v", path, before, after)
	}
	return nil
}
