// Package owned keeps the children of an owner, a custom resource of any kind, in their desired state, and reports the
// result in the conditions of the owner. It never changes an object that the owner does not own.
package owned

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Kind is the kind of the owners.
type Kind struct{ schema.GroupVersionKind }

// Annotation is the key of an annotation of each child. It holds the UID of the owner that the child was made for, and
// the hash of the last apply: "UID/hash". The hash shows that a field is not desired any more, which a comparison of
// the desired fields cannot show. The UID identifies a child that lost its owner reference.
func (k Kind) Annotation() string { return k.Group + "/applied" }

// UID returns the UID of the owner that controls an object, or for which an object without a controller was made. It is
// empty when there is none of this kind.
func (k Kind) UID(obj metav1.Object) types.UID {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil {
		uid, _, _ := strings.Cut(obj.GetAnnotations()[k.Annotation()], "/")
		return types.UID(uid)
	}
	if strings.HasPrefix(controller.APIVersion, k.Group+"/") && controller.Kind == k.Kind {
		return controller.UID
	}
	return ""
}

// Owns reports whether an owner may change an object: the owner controls it, or the object was made for the owner and
// has no controller now. Owners are compared by UID, because a name can be used again, and another client may have
// changed the rest of the reference. An object that does not exist has no owner.
func (k Kind) Owns(owner, obj metav1.Object) bool {
	return metav1.IsControlledBy(obj, owner) || owner.GetUID() != "" && k.UID(obj) == owner.GetUID()
}

// Demanded by the checks of behaviour/06 and by fault/22-orphans and fault/22-held-by-finalizer: the operator
// never changes an object that the owner does not own, and reports all objects in conflict, each with a way to resolve
// it.

// Conflict returns why an owner cannot have a child with the name of a live object of a kind. It returns nil when the
// owner can, or when the object does not exist.
func (k Kind) Conflict(owner metav1.Object, kind string, obj metav1.Object) *ConditionError {
	controller, what, isOwned := metav1.GetControllerOfNoCopy(obj), kind+" "+obj.GetName(), k.Owns(owner, obj)
	stale := controller != nil && k.UID(obj) == controller.UID && controller.Name == owner.GetName() // of an earlier one
	switch held := heldBy(obj); {
	case obj.GetUID() == "", isOwned && obj.GetDeletionTimestamp() == nil:
		return nil
	case (isOwned || stale) && len(held) > 0:
		return Errorf(ReasonWaitingForDeletion, "%s is being deleted, but its finalizers keep it: the programs that set %s "+
			"must remove them", what, strings.Join(held, ", "))
	case isOwned:
		return Transientf(ReasonWaitingForDeletion, "%s is being deleted and will be made again", what)
	case stale:
		return Transientf(ReasonWaitingForDeletion, "%s belongs to a deleted %s of this name, and the garbage collector "+
			"will remove it", what, k.Kind)
	case controller == nil && k.UID(obj) != "":
		return Errorf(ReasonResourceConflict, "%s was left behind by an earlier %s: delete it, or hand it over by setting "+
			"its annotation %s to %s", what, k.Kind, k.Annotation(), owner.GetUID())
	default:
		return Errorf(ReasonResourceConflict, "%s exists and is not controlled by this %s: delete or rename it", what, k.Kind)
	}
}

// heldBy returns the finalizers that keep an object which is being deleted, apart from the garbage
// collector's own, which ends by itself.
func heldBy(obj metav1.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}
