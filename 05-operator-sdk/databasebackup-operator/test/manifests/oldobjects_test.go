package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/databasebackup-operator/internal/testenv"
)

// The API server evaluates a rule at the root of a schema at each write, also when an object broke the rule before the
// rule existed. The operator must still be able to write the status of such an object, and to remove a finalizer:
// otherwise the namespace of the object never ends.
func TestAnObjectThatANewerRuleRefusesCanEnd(t *testing.T) {
	g := gomega.NewWithT(t)
	c, err := client.New(testenv.NewAPIServer(t), client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	crds := build(t, "crd")
	for _, crd := range crds {
		older := crd.DeepCopy()
		removeRules(older.Object)
		g.Expect(c.Create(t.Context(), older)).To(gomega.Succeed())
	}
	var old []*unstructured.Unstructured
	for _, object := range build(t, "samples") {
		same := func(o *unstructured.Unstructured) bool { return o.GetKind() == object.GetKind() }
		if !strings.Contains(object.GetAPIVersion(), ".") || slices.ContainsFunc(old, same) {
			continue // an object of Kubernetes, or a second sample
		}
		object.SetNamespace("default")
		object.SetName("odd.name")
		object.SetFinalizers([]string{"example.com/files"})
		g.Eventually(func() error { return c.Create(t.Context(), object) }, "30s", "50ms").Should(gomega.Succeed())
		old = append(old, object)
	}
	for _, crd := range crds {
		g.Eventually(func() error { // the API server writes its status, too
			older := crd.DeepCopy()
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), older); err != nil {
				return err
			}
			crd.SetResourceVersion(older.GetResourceVersion())
			return c.Update(t.Context(), crd.DeepCopy())
		}, "30s", "50ms").Should(gomega.Succeed())
	}
	for _, object := range old {
		other := object.DeepCopy()
		other.SetName("another.name")
		other.SetResourceVersion("")
		g.Eventually(func() error { return c.Create(t.Context(), other.DeepCopy(), client.DryRunAll) }, "60s", "50ms").
			Should(gomega.MatchError(gomega.ContainSubstring("metadata.name must have")))
		status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False",`+
			`"reason":"Odd","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`))
		if err := c.Status().Patch(t.Context(), object, status); err != nil {
			t.Errorf("write the status of a %s: %v", object.GetKind(), err)
		}
		g.Expect(c.Delete(t.Context(), object)).To(gomega.Succeed())
		finalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(t.Context(), object, finalizers); err != nil {
			t.Errorf("remove the finalizer of a %s: %v", object.GetKind(), err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("the %s is still there: %v", object.GetKind(), err)
		}
	}
}

// removeRules removes all rules in CEL.
func removeRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "x-kubernetes-validations")
		for _, inner := range value {
			removeRules(inner)
		}
	case []any:
		for _, inner := range value {
			removeRules(inner)
		}
	}
}
