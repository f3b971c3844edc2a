package hardening

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by TestTrim, and by the memory that internal/cachecost measures: the caches hold all objects of three
// kinds in the cluster, because any of them may be in conflict with a child, and most of them no MyWeb owns.

// Trim is a cache.TransformFunc: its result is kept instead of what the API server sent. Nobody here reads managed
// fields, the larger half of many objects. Of an object that no MyWeb owns only its name, its owners and its node
// ports matter.
func Trim(obj any) (any, error) {
	o, ok := obj.(myweb.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if _, ok := obj.(*webv1.MyWeb); ok || myweb.OwnerUID(o) != "" {
		return obj, nil
	}
	o.SetAnnotations(nil)
	o.SetLabels(nil)
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data, o.BinaryData = nil, nil
	case *appsv1.Deployment:
		o.Spec, o.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{}
	}
	return obj, nil
}
