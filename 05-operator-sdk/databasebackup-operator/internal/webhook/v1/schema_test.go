package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/databasebackup-operator/internal/controller"
)

// raw returns a DatabaseBackup of any shape: the original with a change.
func raw(name string, change func(object map[string]any)) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(original())
	Expect(err).NotTo(HaveOccurred())
	change(object)
	delete(object, "status")
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(controller.BackupKind)
	u.SetName(name)
	return u
}

func set(field string, value any) func(map[string]any) {
	return func(object map[string]any) { object["spec"].(map[string]any)[field] = value }
}

// The schema refuses a wrong type with the path of the field. A webhook that refused it first would report an error in
// Go's words.
var _ = DescribeTable("Objects that cannot be decoded are left to the schema",
	func(change func(map[string]any), message string) {
		refused := And(WithTransform(apierrors.IsInvalid, BeTrue()), MatchError(ContainSubstring(message)))
		Expect(k8sClient.Create(ctx, raw("new", change), client.DryRunAll)).To(refused)
		old := original()
		old.Name = "old"
		Expect(k8sClient.Create(ctx, old)).To(Succeed())
		DeferCleanup(func() { Expect(k8sClient.Delete(ctx, old)).To(Succeed()) })
		update := raw("old", change)
		update.SetResourceVersion(old.ResourceVersion)
		Expect(k8sClient.Update(ctx, update)).To(refused)
	},
	Entry("no spec", func(object map[string]any) { delete(object, "spec") }, "spec: Required value"),
	Entry("a spec that is a string", func(object map[string]any) { object["spec"] = "x" }, "spec: Invalid value"),
	Entry("a spec that is a list", func(object map[string]any) { object["spec"] = []any{"x"} }, "spec: Invalid value"),
	Entry("a schedule that is a number", set("schedule", int64(5)), "spec.schedule: Invalid value"),
	Entry("a suspend that is a string", set("suspend", "yes"), "spec.suspend: Invalid value"),
)
