// Package owned keeps the objects that a custom resource owns in their desired state. It applies the objects that
// differ, never changes an object that the resource does not own, and computes the conditions that report the result.
package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/fields"
)

// A Child is an object that a resource owns.
type Child struct {
	// Kind is for messages.
	Kind string
	// Live is the observed state. It is empty, without a UID, while the resource owns no such object.
	Live client.Object

	desired runtime.ApplyConfiguration
	meta    *metav1ac.ObjectMetaApplyConfiguration
	fields  map[string]any // the desired state, as a tree
}

// Deployment returns a child with a desired state. The resource owns the fields that are set there, no others.
func Deployment(desired *appsv1ac.DeploymentApplyConfiguration) *Child {
	return &Child{"Deployment", &appsv1.Deployment{}, desired, desired.ObjectMetaApplyConfiguration, nil}
}

// Service returns a child with a desired state. The resource owns the fields that are set there, no others.
func Service(desired *corev1ac.ServiceApplyConfiguration) *Child {
	return &Child{"Service", &corev1.Service{}, desired, desired.ObjectMetaApplyConfiguration, nil}
}

// String is the kind and the name, for messages.
func (c *Child) String() string { return c.Kind + " " + *c.meta.Name }

// setOwner adds to the desired state the reference to the owner and an annotation, "UID/hash". The hash shows that a
// field is no longer desired, which a comparison of the desired fields cannot. The UID identifies a child that lost its
// owner reference.
func (c *Child) setOwner(kind Kind, owner client.Object) {
	c.meta.OwnerReferences = []metav1ac.OwnerReferenceApplyConfiguration{*kind.reference(owner)}
	c.meta.Annotations = nil
	data, err := json.Marshal(c.desired)
	utilruntime.Must(err) // apply configurations are made of strings, numbers, maps and lists
	sum := sha256.Sum256(data)
	c.meta.Annotations = map[string]string{kind.Annotation(): string(owner.GetUID()) + "/" + hex.EncodeToString(sum[:8])}
	c.fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(c.desired)
	utilruntime.Must(err)
	delete(c.fields, "apiVersion") // not set on objects from a typed client
	delete(c.fields, "kind")
}

// difference returns the path of a field whose live value is not the desired value, "" when the child is up to date.
func (c *Child) difference() string {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Live)
	utilruntime.Must(err) // an object of a typed client can be converted
	for _, first := range fields.Differences(c.fields, live) {
		return first.Path
	}
	return ""
}
