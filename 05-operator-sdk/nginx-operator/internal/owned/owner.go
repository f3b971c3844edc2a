package owned

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reference makes the garbage collector remove a child with its owner. blockOwnerDeletion is left out: it
// needs a further permission and only matters for deletion in the foreground.
func (k *Keeper) reference(owner client.Object) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(k.kind.GroupVersion().String()).WithKind(k.kind.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).WithController(true)
}

// Belongs reports whether a resource may change an object: it controls it, or made it and nobody controls
// it now. Owners are told apart by their UIDs: a name may have been given anew.
func (k *Keeper) Belongs(obj, owner metav1.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		return controller.UID == owner.GetUID()
	}
	return madeFor(k.kind, obj) == owner.GetUID()
}

// OfKind reports whether a resource of a kind controls an object, or made it and nobody controls it now.
func OfKind(kind schema.GroupVersionKind, obj metav1.Object) bool { return ownerUID(kind, obj) != "" }

// ownerUID is the UID of the resource of a kind that controls an object or made it, empty when none did.
func ownerUID(kind schema.GroupVersionKind, obj metav1.Object) types.UID {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil {
		return madeFor(kind, obj)
	}
	if group, err := schema.ParseGroupVersion(controller.APIVersion); err != nil || group.Group != kind.Group || controller.Kind != kind.Kind {
		return ""
	}
	return controller.UID
}

func madeFor(kind schema.GroupVersionKind, obj metav1.Object) types.UID {
	uid, _, _ := strings.Cut(obj.GetAnnotations()[annotation(kind)], "/")
	return types.UID(uid)
}

// annotation is the name under which a child carries its owner's UID and the hash of what was applied.
func annotation(kind schema.GroupVersionKind) string { return kind.Group + "/applied" }

// inTheWay returns what keeps a resource from using the name of a live object as a child's, nil when
// nothing does.
func (k *Keeper) inTheWay(owner client.Object, child *Child) *Obstacle {
	obj, what := child.Live, child.Kind+" "+child.Live.GetName()
	controller := metav1.GetControllerOfNoCopy(obj)
	switch {
	case k.Belongs(obj, owner) && obj.GetDeletionTimestamp() != nil:
		return &Obstacle{Reason: ReasonWaitingForDeletion, Passing: true,
			Message: what + " is being deleted and will be made again"}
	case k.Belongs(obj, owner):
		return nil
	case controller != nil && ownerUID(k.kind, obj) == controller.UID && controller.Name == owner.GetName(): // two cannot have one name
		return &Obstacle{Reason: ReasonWaitingForDeletion, Passing: true,
			Message: what + " is left of a deleted " + k.kind.Kind + " of this name: the garbage collector will remove it"}
	default:
		return &Obstacle{Reason: ReasonResourceConflict,
			Message: what + " exists and is not controlled by this " + k.kind.Kind + ": delete or rename it"}
	}
}
