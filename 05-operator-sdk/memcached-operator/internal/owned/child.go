package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// An Object is a Kubernetes object in its Go type.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Child is an object that an owner controls: its desired state, and its live state.
type Child struct {
	Kind string
	// Needed: the children after it wait until it has its desired state, as pods wait for their page.
	Needed bool
	// Desired is an apply configuration. The operator owns the fields that it names, and no others.
	Desired runtime.ApplyConfiguration
	// Meta is the metadata of Desired: a field that is set in Meta is set in Desired.
	Meta *metav1ac.ObjectMetaApplyConfiguration
	// Fields is Desired as a tree of fields, for the comparison of the stages and of 03.
	Fields map[string]any
	// Live is the child in the cluster. It is empty, without a UID, while the owner has no such child.
	Live Object
}

// Own adds to the desired state of a child the reference to its owner and the annotation with its own hash, and sets
// Fields. Because of the reference, the garbage collector removes the child together with its owner.
// controllerutil.SetControllerReference would add the same, but it takes an object and not an apply configuration: an
// object also holds fields that are merely empty, and an apply of it would own those too. blockOwnerDeletion is left
// out: it needs one more permission and matters only for foreground deletion.
func (k Kind) Own(owner metav1.Object, child *Child) {
	child.Meta.WithOwnerReferences(metav1ac.OwnerReference().
		WithAPIVersion(k.GroupVersion().String()).WithKind(k.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).WithController(true))
	data, err := json.Marshal(child.Desired)
	utilruntime.Must(err) // apply configurations are made of strings, numbers, maps and lists
	hash := sha256.Sum256(data)
	child.Meta.WithAnnotations(map[string]string{
		k.Annotation(): string(owner.GetUID()) + "/" + hex.EncodeToString(hash[:8])})
	child.Fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired)
	utilruntime.Must(err)
	delete(child.Fields, "apiVersion") // not set on objects from a typed client
	delete(child.Fields, "kind")
}
