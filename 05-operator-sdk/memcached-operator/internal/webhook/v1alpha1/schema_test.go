package v1alpha1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/controller"
)

// raw is a Memcached of any shape.
func raw(name string, spec any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(controller.Kind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// The schema refuses a wrong type with the path of the field. If a webhook refused it first, the user would see an
// error of Go's decoder.
var _ = DescribeTable("Objects that cannot be decoded are left to the schema",
	func(spec any, field string) {
		refused := And(WithTransform(apierrors.IsInvalid, BeTrue()), MatchError(ContainSubstring(field+": Invalid value")))
		Expect(k8sClient.Create(ctx, raw("new", spec), client.DryRunAll)).To(refused)
		old := memcached("old")
		Expect(k8sClient.Create(ctx, old)).To(Succeed())
		DeferCleanup(func() { Expect(k8sClient.Delete(ctx, old)).To(Succeed()) })
		update := raw("old", spec)
		update.SetResourceVersion(old.ResourceVersion)
		Expect(k8sClient.Update(ctx, update)).To(refused)
	},
	Entry("a spec that is a string", "x", "spec"),
	Entry("a spec that is a list", []any{"x"}, "spec"),
	Entry("an image that is a number", map[string]any{"image": int64(5), "configRef": map[string]any{}}, "spec.image"),
	Entry("a size that is a string", map[string]any{"size": "x", "configRef": map[string]any{}}, "spec.size"),
	Entry("a configRef that is a string", map[string]any{"configRef": "x"}, "spec.configRef"),
	Entry("a name that is a number", map[string]any{"configRef": map[string]any{"name": int64(5)}}, "spec.configRef.name"),
)

var _ = It("A Memcached without spec stays editable", func() {
	u := raw("bare", nil)
	delete(u.Object, "spec")
	Expect(k8sClient.Create(ctx, u)).To(Succeed())
	DeferCleanup(func() { Expect(k8sClient.Delete(ctx, u)).To(Succeed()) })
	u.SetLabels(map[string]string{"a": "b"})
	Expect(k8sClient.Update(ctx, u)).To(Succeed())
})
