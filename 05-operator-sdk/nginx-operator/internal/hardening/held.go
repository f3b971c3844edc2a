package hardening

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Demanded by TestAChildHeldByAFinalizerIsReported: an object that is being deleted can stay for days.

// HeldBy returns the finalizers that keep an object which is being deleted, apart from the garbage collector's
// own, which end by themselves.
func HeldBy(obj metav1.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
}
