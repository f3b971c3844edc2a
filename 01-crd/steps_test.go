package crd_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

// steps are the manifests in the order in which the page applies them, each with its check.
var steps = []struct {
	file  string
	shows func(t *testing.T, cfg *rest.Config, c client.Client)
}{
	{"steps/01-minimal.yaml", minimalKeepsNoFields},
	{"steps/02-schema.yaml", schemaKeepsAndChecksFields},
	{"steps/03-columns.yaml", columnsShowTheSpec},
	{"steps/04-defaults-and-bounds.yaml", defaultsReachStoredObjects},
	{"steps/05-cel.yaml", rulesSpareWhatDoesNotChange},
	{"steps/06-status-and-scale.yaml", statusAndScaleAreServed},
	{contract, namesAreServed},
}

// The steps are applied one after another on one API server, with objects that live through all steps.
func TestStepsApplyInOrder(t *testing.T) {
	cfg := testenv.NewAPIServer(t)
	c := newClient(t, cfg)
	for _, step := range steps {
		if !t.Run(step.file, func(t *testing.T) {
			applyCRD(t, c, step.file)
			step.shows(t, cfg, c)
		}) {
			t.FailNow() // the next step needs this step
		}
	}
	t.Run("what early steps stored is still there and can be deleted", func(t *testing.T) {
		for _, name := range []string{"first", "myweb", "odd", "odd.name"} {
			if err := c.Delete(t.Context(), get(t, c, name)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNoStepIsForgotten(t *testing.T) {
	want := append(files(t, "steps/*.yaml"), contract)
	var got []string
	for _, step := range steps {
		got = append(got, step.file)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-in the folder +in the test):\n%s", diff)
	}
}

// Each step keeps the schema of the step before, except descriptions and columns. The contract
// adds names to step 6 and changes nothing else.
func TestEachStepKeepsWhatTheOneBeforeSays(t *testing.T) {
	for i := 1; i < len(steps); i++ {
		before, after := readObject(t, steps[i-1].file), readObject(t, steps[i].file)
		if err := checkKept("", before.Object, after.Object); err != nil {
			t.Errorf("from %s to %s: %v", steps[i-1].file, steps[i].file, err)
		}
	}
	last := readObject(t, steps[len(steps)-2].file)
	names := last.Object["spec"].(map[string]any)["names"].(map[string]any)
	names["shortNames"], names["categories"] = []any{"web"}, []any{"all"}
	if diff := cmp.Diff(last.Object, readObject(t, contract).Object); diff != "" {
		t.Errorf("step 6 with names differs from the contract (-step 6 +contract):\n%s", diff)
	}
}

// The API server has requirements for every CRD, even the smallest.
func TestSchemasAreMandatoryAndStructural(t *testing.T) {
	c := newClient(t, server)
	for name, test := range map[string]struct {
		schema          map[string]any
		field, sentence string
	}{
		"no schema": {nil, "spec.versions[0].schema.openAPIV3Schema", "Required value"},
		"a field without a type": {
			map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{}}},
			"spec.validation.openAPIV3Schema.properties[spec].type", "must not be empty for specified object fields",
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := readObject(t, "steps/01-minimal.yaml")
			crd.SetName("others.example.com")
			crd.Object["spec"].(map[string]any)["group"] = "example.com"
			crd.Object["spec"].(map[string]any)["names"] = map[string]any{"plural": "others", "kind": "Other"}
			version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			version["schema"] = map[string]any{"openAPIV3Schema": test.schema}
			if test.schema == nil {
				delete(version, "schema")
			}
			if err := checkRefused(c.Create(t.Context(), crd, client.DryRunAll), test.field, test.sentence); err != nil {
				t.Error(err)
			}
		})
	}
}

func minimalKeepsNoFields(t *testing.T, cfg *rest.Config, c client.Client) {
	eventually(t, func() error {
		return checkRefused(c.Create(t.Context(), readObject(t, original)), "spec", "unknown field")
	})
	// A client that does not ask for strictness loses the whole spec.
	lenient, err := client.New(cfg, client.Options{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		t.Fatal(err)
	}
	web := readObject(t, original)
	web.SetName("first")
	if err := lenient.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if spec, found := get(t, c, "first").Object["spec"]; found {
		t.Errorf("stored spec %v", spec)
	}
}

func schemaKeepsAndChecksFields(t *testing.T, _ *rest.Config, c client.Client) {
	web := readObject(t, original)
	eventually(t, func() error { return c.Create(t.Context(), web) })
	if diff := cmp.Diff(readObject(t, original).Object["spec"], get(t, c, "myweb").Object["spec"]); diff != "" {
		t.Errorf("stored spec (-want +got):\n%s", diff)
	}
	for file, sentence := range map[string]string{
		"image-missing": "Required value", "image-not-text": "must be of type string",
		"node-port-text": "must be of type integer",
	} {
		bad := "samples/bad/" + file + ".yaml"
		field, _ := readRefusal(t, bad)
		if err := checkRefused(c.Create(t.Context(), readMyWeb(t, bad), client.DryRunAll), field, sentence); err != nil {
			t.Error(err)
		}
	}
	// An object without spec, stored before spec was required, can be read but not changed.
	err := c.Patch(t.Context(), get(t, c, "first"), mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))
	if err := checkRefused(err, "spec", "Required value"); err != nil {
		t.Error(err)
	}
}

func columnsShowTheSpec(t *testing.T, cfg *rest.Config, c client.Client) {
	eventually(t, func() error { return checkColumns(table(t, cfg, "myweb"), "Name", "Image", "NodePort", "Age") })
	if diff := cmp.Diff([]any{"myweb", "nginx", 30100.0}, table(t, cfg, "myweb").Rows[0].Cells[:3]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	// Store these objects before a schema refuses them; the steps with limits and rules need them.
	for name, spec := range map[string]map[string]any{
		"odd":      {"image": "Odd Image", "nodePortNumber": int64(80), "pageContentHtml": overlongPage("o")},
		"odd.name": {"image": "nginx"},
	} {
		if err := c.Create(t.Context(), newMyWeb(name, spec)); err != nil {
			t.Error(err)
		}
	}
}

func defaultsReachStoredObjects(t *testing.T, _ *rest.Config, c client.Client) {
	before := get(t, c, "myweb").GetResourceVersion()
	eventually(t, func() error {
		if got, _, _ := unstructured.NestedInt64(get(t, c, "myweb").Object, "spec", "replicas"); got != 1 {
			return fmt.Errorf("replicas = %d, want the default 1", got)
		}
		return nil
	})
	if after := get(t, c, "myweb").GetResourceVersion(); after != before {
		t.Errorf("resourceVersion went from %s to %s, want no write: the default is filled in on reading", before, after)
	}
	if diff := cmp.Diff([]string{"spec"}, causesOfNoObject(t, c)); diff != "" {
		t.Errorf("fields that are blamed for a spec that is a text, without rules (-want +got):\n%s", diff)
	}
	for _, bad := range files(t, "samples/bad/*-too-*.yaml") {
		if strings.Contains(bad, "name") {
			continue // a rule of the next step
		}
		field, sentence := readRefusal(t, bad)
		if err := checkRefused(c.Create(t.Context(), readMyWeb(t, bad), client.DryRunAll), field, sentence); err != nil {
			t.Error(err)
		}
	}
}

// causesOfNoObject are the fields that the API server names when spec is a text. One field is the mistake. A CRD with
// the scale subresource adds the path of its replicas, a CRD with rules in CEL adds that they were not evaluated.
func causesOfNoObject(t *testing.T, c client.Client) (fields []string) {
	t.Helper()
	err := c.Create(t.Context(), readMyWeb(t, "samples/bad/spec-not-object.yaml"), client.DryRunAll)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("not a refusal: %v", err)
	}
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

func rulesSpareWhatDoesNotChange(t *testing.T, _ *rest.Config, c client.Client) {
	eventually(t, func() error {
		bad := "samples/bad/image-upper-case.yaml"
		field, sentence := readRefusal(t, bad)
		return checkRefused(c.Create(t.Context(), readMyWeb(t, bad), client.DryRunAll), field, sentence)
	})
	if diff := cmp.Diff([]string{"spec", "<nil>"}, causesOfNoObject(t, c)); diff != "" {
		t.Errorf("fields that are blamed for a spec that is a text, with rules (-want +got):\n%s", diff)
	}
	odd := get(t, c, "odd") // its image, its port and its page are forbidden now
	if err := c.Patch(t.Context(), odd, mergePatch(`{"spec":{"replicas":2}}`)); err != nil {
		t.Errorf("change another field: %v", err)
	}
	err := c.Patch(t.Context(), odd, mergePatch(`{"spec":{"image":"Another Odd Image"}}`))
	if err := checkRefused(err, "spec.image", "must be an image reference"); err != nil {
		t.Errorf("change the forbidden image to another one: %v", err)
	}
	err = c.Patch(t.Context(), odd, mergePatch(fmt.Sprintf(`{"spec":{"pageContentHtml":%q}}`, overlongPage("p"))))
	if err := checkRefused(err, "spec.pageContentHtml", "may not be more than"); err != nil {
		t.Errorf("change the overlong page to another one: %.500v", err)
	}
	// The rule for the name is on the whole object, and an update always changes some field of it.
	err = c.Patch(t.Context(), get(t, c, "odd.name"), mergePatch(`{"spec":{"replicas":2}}`))
	if err := checkRefused(err, "metadata", "metadata.name must have"); err != nil {
		t.Error(err)
	}
}

func statusAndScaleAreServed(t *testing.T, cfg *rest.Config, c client.Client) {
	web := newMyWeb("myweb", nil)
	eventually(t, func() error { return c.SubResource("scale").Get(t.Context(), web, newScale()) })
	if diff := cmp.Diff([]string{"spec", ".spec.replicas", "<nil>"}, causesOfNoObject(t, c)); diff != "" {
		t.Errorf("fields that are blamed for a spec that is a text, with scale (-want +got):\n%s", diff)
	}
	if err := c.Status().Patch(t.Context(), web,
		mergePatch(`{"status":{"nodePort":30333,"readyReplicas":1}}`)); err != nil {
		t.Fatal(err)
	}
	if err := checkColumns(table(t, cfg, "myweb"), "Name", "Image", "NodePort", "Ready", "Age"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]any{"myweb", "nginx", 30333.0, 1.0}, table(t, cfg, "myweb").Rows[0].Cells[:4]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func namesAreServed(t *testing.T, cfg *rest.Config, _ client.Client) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		list, err := d.ServerResourcesForGroupVersion("operator.k8s-summit.org/v1")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "mywebs" })
		if i < 0 {
			return fmt.Errorf("mywebs is not among %v", list.APIResources)
		}
		got := list.APIResources[i]
		if !slices.Equal(got.ShortNames, []string{"web"}) || !slices.Equal(got.Categories, []string{"all"}) {
			return fmt.Errorf("short names %v and categories %v, want web and all", got.ShortNames, got.Categories)
		}
		return nil
	})
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

// checkColumns returns nil when kubectl get would print the given columns.
func checkColumns(table *metav1.Table, want ...string) error {
	var got []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			got = append(got, column.Name)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("columns %v, want %v", got, want)
	}
	return nil
}
