package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	spec := map[string]any{"image": "Odd Image", "nodePortNumber": int64(80), "pageContentHtml": overlongPage("o")}
	eventually(t, func() error { return c.Create(t.Context(), newMyWeb("odd", spec)) })
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
	for name, test := range map[string]struct{ patch, field, sentence string }{
		"another odd image": {`{"spec":{"image":"Another Odd Image"}}`, "spec.image", "must be an image reference"},
		"another overlong page": {fmt.Sprintf(`{"spec":{"pageContentHtml":%q}}`, overlongPage("p")),
			"spec.pageContentHtml", "may not be more than"},
	} {
		err := c.Patch(t.Context(), get(t, c, "odd"), mergePatch(test.patch))
		if err := checkRefused(err, test.field, test.sentence); err != nil {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}

// A rule at the root of the schema is about the whole object, and each write changes a part of it, so the API server
// never exempts an object that breaks the rule. An operator could not write its status or remove its finalizer, and a
// namespace with such an object would never end. Therefore the rules at the root are for new objects only.
//
// `required: [spec]` is at the root, too, and refuses such writes. But each schema that has fields has it, from step 2 on,
// so the API server never stored an object that breaks it.
func TestRulesAtTheRootAreForNewObjectsOnly(t *testing.T) {
	c := newClient(t, testenv.NewAPIServer(t))
	applyCRD(t, c, "steps/04-defaults-and-bounds.yaml")
	web := newMyWeb("odd.name", map[string]any{"image": "nginx"})
	web.SetFinalizers([]string{"example.com/files"})
	eventually(t, func() error { return c.Create(t.Context(), web) })
	applyCRD(t, c, contract)
	eventually(t, func() error {
		err := c.Create(t.Context(), newMyWeb("new.name", map[string]any{"image": "nginx"}), client.DryRunAll)
		return checkRefused(err, "metadata", "metadata.name must have")
	})
	spec, status := mergePatch(`{"spec":{"replicas":3}}`), mergePatch(`{"status":{"readyReplicas":1}}`)
	for what, err := range map[string]error{
		"another field": c.Patch(t.Context(), web, spec),
		"a label":       c.Patch(t.Context(), web, mergePatch(`{"metadata":{"labels":{"a":"b"}}}`)),
		"the status":    c.Status().Patch(t.Context(), web, status),
		"the scale":     c.SubResource("scale").Patch(t.Context(), web, spec, client.WithSubResourceBody(newScale())),
	} {
		if err != nil {
			t.Errorf("write %s of an object with an odd name: %v", what, err)
		}
	}
	testenv.Must(t, c.Delete(t.Context(), web))
	if err := c.Patch(t.Context(), web, mergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Errorf("remove the finalizer of an object with an odd name: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(web), web); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
}

// overlongPage is a page that an older schema without limits stored.
func overlongPage(char string) string { return strings.Repeat(char, 131072) }

// applyCRD does what kubectl apply does and waits until the API server serves the kind.
func applyCRD(t *testing.T, c client.Client, path string) {
	t.Helper()
	crd := readObject(t, path)
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("steps"))
	testenv.Must(t, err)
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
