// Package owned keeps the objects that a custom resource owns in their desired state. It applies the objects that
// differ, and never changes an object that the resource does not own.
package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/conditions"
	"github.com/example/memcached-operator/internal/hardening"
)

// A Child is an object that a resource owns.
type Child struct {
	// Kind is for messages.
	Kind string
	// Live is the observed state, nil when there is none.
	Live client.Object

	desired runtime.ApplyConfiguration
	meta    *metav1ac.ObjectMetaApplyConfiguration
	fields  map[string]any // the desired state, as a tree
	empty   client.Object  // to be copied
}

// Deployment returns a child with a desired state. The resource owns the fields that are set there, no others.
func Deployment(desired *appsv1ac.DeploymentApplyConfiguration) *Child {
	return &Child{"Deployment", nil, desired, desired.ObjectMetaApplyConfiguration, nil, &appsv1.Deployment{}}
}

// Service returns a child with a desired state. The resource owns the fields that are set there, no others.
func Service(desired *corev1ac.ServiceApplyConfiguration) *Child {
	return &Child{"Service", nil, desired, desired.ObjectMetaApplyConfiguration, nil, &corev1.Service{}}
}

// String is the kind and the name, for messages.
func (c *Child) String() string { return c.Kind + " " + *c.meta.Name }

// setAppliedHash annotates the desired state with its owner and its own hash, "UID/hash", and returns that. The
// hash shows that a field is no longer desired, which a comparison of the desired fields cannot. The UID
// identifies a child that lost its owner reference.
func (c *Child) setAppliedHash(kind Kind, owner client.Object) (applied string, err error) {
	c.meta.OwnerReferences = []metav1ac.OwnerReferenceApplyConfiguration{*kind.reference(owner)}
	c.meta.Annotations = nil
	data, err := json.Marshal(c.desired)
	sum := sha256.Sum256(data)
	applied = string(owner.GetUID()) + "/" + hex.EncodeToString(sum[:8])
	c.meta.Annotations = map[string]string{kind.annotation(): applied}
	if err == nil {
		c.fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(c.desired)
	}
	return applied, err
}

// differences are the fields whose live value is not the desired value.
func (c *Child) differences() []hardening.Difference {
	if c.Live == nil {
		return nil
	}
	differences, err := hardening.Differences(c.fields, c.Live)
	utilruntime.Must(err) // an object of a typed client can be converted
	return differences
}

// A Kind is the kind of the owners.
type Kind struct{ schema.GroupVersionKind }

// annotation is the name under which a child carries its owner's UID and the hash of what was applied.
func (k Kind) annotation() string { return k.Group + "/applied" }

// reference is the owner reference that controllerutil.SetControllerReference would add. That function takes an object,
// and an apply of an object would own its empty fields too. blockOwnerDeletion is left out: it needs one more
// permission, and matters only for foreground deletion.
func (k Kind) reference(owner client.Object) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(k.GroupVersion().String()).WithKind(k.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).WithController(true)
}

// UID returns the UID of the resource of this kind that controls an object. For an object without a controller, it
// returns the UID of the resource for which the object was created. It is empty when there is none.
func (k Kind) UID(obj metav1.Object) types.UID {
	controller := metav1.GetControllerOfNoCopy(obj)
	if controller == nil {
		uid, _, _ := strings.Cut(obj.GetAnnotations()[k.annotation()], "/")
		return types.UID(uid)
	}
	group, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || group.Group != k.Group || controller.Kind != k.Kind {
		return ""
	}
	return controller.UID
}

// conflict reports why a resource cannot write a live object that has the name of a child, nil when it can. It also
// reports whether the resource owns the object. Owners are compared by UID, because a name can be used again.
func (k Kind) conflict(owner, obj client.Object, what string) (owned bool, err *conditions.ConditionError) {
	controller, uid := metav1.GetControllerOfNoCopy(obj), k.UID(obj)
	owned = uid == owner.GetUID() || controller != nil && controller.UID == owner.GetUID()
	// Two resources cannot have one name.
	stale := controller != nil && uid == controller.UID && controller.Name == owner.GetName()
	switch held := hardening.HeldBy(obj); {
	case owned && obj.GetDeletionTimestamp() == nil:
		return owned, nil
	case (owned || stale) && len(held) > 0:
		return owned, conditions.Errorf(conditions.ReasonWaitingForDeletion, "%s is being deleted, but its "+
			"finalizers keep it: the programs that set %s must remove them", what, strings.Join(held, ", "))
	case owned:
		return owned, conditions.Transientf(conditions.ReasonWaitingForDeletion, "%s is being deleted and will be "+
			"made again", what)
	case stale:
		return owned, conditions.Transientf(conditions.ReasonWaitingForDeletion, "%s belongs to a deleted %s of this "+
			"name: the garbage collector will remove it", what, k.Kind)
	case controller == nil && uid != "":
		return owned, conditions.Errorf(conditions.ReasonResourceConflict, "%s was left behind by an earlier %s: delete "+
			"it, or hand it over: set its annotation %s to %s", what, k.Kind, k.annotation(), owner.GetUID())
	default:
		return owned, conditions.Errorf(conditions.ReasonResourceConflict, "%s exists and is not controlled by "+
			"this %s: delete or rename it", what, k.Kind)
	}
}
