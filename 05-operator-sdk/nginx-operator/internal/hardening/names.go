package hardening

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestWhatTheCacheKeeps: the cache holds all Deployments, Services and ConfigMaps of the cluster, because
// any of them may have the name of a child or be named by a resource.

// NameOf is the metadata that identifies an object, its version and its owners.
func NameOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences()}
}
