package owned

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Trim returns what a cache shall keep of a Deployment or a Service that belongs to no resource of a kind:
// its name and its owner, for it may stand in the way. Everything else is kept as it is.
func Trim(kind schema.GroupVersionKind, obj client.Object) client.Object {
	if OfKind(kind, obj) {
		return obj
	}
	switch obj.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: NameOf(obj)}
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: NameOf(obj)}
	}
	return obj
}

// NameOf is the metadata that names an object, its version and its owners.
func NameOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences()}
}
