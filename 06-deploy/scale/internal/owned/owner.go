// Package owned keeps the children of an owner, a custom resource of any kind, in their desired state, and reports the
// result in the conditions of the owner. It never changes an object that the owner does not own.
package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// A Kind is the kind of the owners.
type Kind struct{ schema.GroupVersionKind }

// An Object is a Kubernetes object in its Go type.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Child is an object that an owner controls: its desired state, and its live state.
type Child struct {
	Kind string
	// Needed: the children after it wait while it could not be applied even once, as pods wait for their newest page.
	Needed bool
	// Desired is an apply configuration. The operator owns the fields that it names (fields.Of), and no others.
	Desired runtime.ApplyConfiguration
	// Meta is the metadata of Desired: a field that is set in Meta is set in Desired.
	Meta *metav1ac.ObjectMetaApplyConfiguration
	// BeforeCreate changes Desired before a missing child is applied. It may be nil.
	BeforeCreate func()
	// Live is the child in the cache, or in the answer to an apply. Without such a child it is empty and has no UID.
	Live Object
}

// Own adds to the desired state of a child the reference to its owner, by which the garbage collector removes the child
// together with its owner, and the annotation with its own hash. controllerutil.SetControllerReference takes an object,
// and an apply of an object would own its empty fields, too.
func (k Kind) Own(owner metav1.Object, child *Child) {
	child.Meta.WithOwnerReferences(metav1ac.OwnerReference().
		WithAPIVersion(k.GroupVersion().String()).WithKind(k.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).WithController(true))
	data, err := json.Marshal(child.Desired)
	utilruntime.Must(err) // apply configurations are made of strings, numbers, maps and lists
	hash := sha256.Sum256(data)
	child.Meta.WithAnnotations(map[string]string{
		k.Annotation(): string(owner.GetUID()) + "/" + hex.EncodeToString(hash[:8])})
}

// Annotation is the key of an annotation of each child. It holds the UID of the owner that the child was made for, and
// the hash of the last apply: "UID/hash". The hash shows that a field is not desired any more, which a comparison of
// the desired fields cannot show. The UID identifies a child that lost its owner reference.
func (k Kind) Annotation() string { return k.Group + "/applied" }

// UID returns the UID of the owner that controls an object, or for which an object without a controller was made.
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
// has no controller now. Owners are compared by UID, because a name can be used again.
func (k Kind) Owns(owner, obj metav1.Object) bool {
	return metav1.IsControlledBy(obj, owner) || owner.GetUID() != "" && k.UID(obj) == owner.GetUID()
}

// Conflict returns why an owner cannot have a child with the name of a live object of a kind, with a way to resolve it;
// nil when it can. Demanded by the checks of behaviour/06, fault/22-orphans and fault/22-held-by-finalizer.
func (k Kind) Conflict(owner metav1.Object, kind string, obj metav1.Object) *ConditionError {
	controller, what, isOwned := metav1.GetControllerOfNoCopy(obj), kind+" "+obj.GetName(), k.Owns(owner, obj)
	stale := controller != nil && k.UID(obj) == controller.UID && controller.Name == owner.GetName() // it was deleted
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

// heldBy returns the finalizers that keep an object which is being deleted, apart from the garbage collector's own.
func heldBy(obj metav1.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}
