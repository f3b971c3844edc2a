package owned

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Kind is the kind of the owners.
type Kind struct{ schema.GroupVersionKind }

// Annotation returns the key of the annotation that has the owner's UID and the hash of the applied fields.
func (k Kind) Annotation() string { return k.Group + "/applied" }

// reference is the owner reference that controllerutil.SetControllerReference would add. That function takes an object,
// and an apply of an object would own its empty fields too. blockOwnerDeletion is left out: it needs one more
// permission, and matters only for foreground deletion.
func (k Kind) reference(owner client.Object) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(k.GroupVersion().String()).WithKind(k.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).WithController(true)
}

// UID returns the UID of the resource of this kind that controls an object. For an object without a controller, it
// returns the UID of the resource for which the object was created. It is empty without such a resource.
func (k Kind) UID(obj metav1.Object) types.UID {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil {
		uid, _, _ := strings.Cut(obj.GetAnnotations()[k.Annotation()], "/")
		return types.UID(uid)
	}
	group, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || group.Group != k.Group || controller.Kind != k.Kind {
		return ""
	}
	return controller.UID
}

// conflict returns the reason why a resource cannot write a live object that has the name of a child, or nil. It also
// reports whether the resource owns the object. Owners are compared by UID, because a name can be used again.
func (k Kind) conflict(owner, obj client.Object, what string) (owned bool, err *ConditionError) {
	controller, uid := metav1.GetControllerOfNoCopy(obj), k.UID(obj)
	owned = uid == owner.GetUID() || controller != nil && controller.UID == owner.GetUID()
	// Two resources cannot have the same name.
	stale := controller != nil && uid == controller.UID && controller.Name == owner.GetName()
	switch held := heldBy(obj); {
	case obj.GetUID() == "": // it does not exist
		return false, nil
	case owned && obj.GetDeletionTimestamp() == nil:
		return owned, nil
	case (owned || stale) && len(held) > 0:
		return owned, Errorf(ReasonWaitingForDeletion, "%s is being deleted, but its "+
			"finalizers keep it: the programs that set %s must remove them", what, strings.Join(held, ", "))
	case owned:
		return owned, Transientf(ReasonWaitingForDeletion, "%s is being deleted and will be "+
			"made again", what)
	case stale:
		return owned, Transientf(ReasonWaitingForDeletion, "%s belongs to a deleted %s of this "+
			"name: the garbage collector will remove it", what, k.Kind)
	case controller == nil && uid != "":
		return owned, Errorf(ReasonResourceConflict, "%s was left behind by an earlier %s: delete "+
			"it, or hand it over: set its annotation %s to %s", what, k.Kind, k.Annotation(), owner.GetUID())
	default:
		return owned, Errorf(ReasonResourceConflict, "%s exists and is not controlled by "+
			"this %s: delete or rename it", what, k.Kind)
	}
}

// heldBy returns the finalizers that keep an object which is being deleted, without those that the garbage collector
// itself removes.
func heldBy(obj metav1.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
}

// NameOf returns the metadata that identifies an object, its version and its owners. A cache keeps only this of an
// object that no resource owns.
func NameOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences()}
}
