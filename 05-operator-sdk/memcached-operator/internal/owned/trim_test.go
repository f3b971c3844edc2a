package owned

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsKeptOfAnObject(t *testing.T) {
	ours := metav1.OwnerReference{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: "site", UID: "u-1", Controller: new(true)}
	theirs := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r-1", Controller: new(true)}
	full := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7", Generation: 2,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, OwnerReferences: owners}
	}
	byAnnotation := full()
	byAnnotation.Annotations = map[string]string{"policy/applied": "u-1/0123"}
	named := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7", OwnerReferences: owners}
	}
	spec, ports := appsv1.DeploymentSpec{Replicas: new(int32(3))}, corev1.ServiceSpec{ClusterIP: "10.0.0.1"}
	for name, test := range map[string]struct{ obj, want client.Object }{
		"a Deployment of ours":            {&appsv1.Deployment{ObjectMeta: full(ours), Spec: spec}, &appsv1.Deployment{ObjectMeta: full(ours), Spec: spec}},
		"one that lost its owner":         {&appsv1.Deployment{ObjectMeta: byAnnotation, Spec: spec}, &appsv1.Deployment{ObjectMeta: byAnnotation, Spec: spec}},
		"a Deployment of others":          {&appsv1.Deployment{ObjectMeta: full(), Spec: spec}, &appsv1.Deployment{ObjectMeta: named()}},
		"a Service of ours":               {&corev1.Service{ObjectMeta: full(ours), Spec: ports}, &corev1.Service{ObjectMeta: full(ours), Spec: ports}},
		"a Service of another controller": {&corev1.Service{ObjectMeta: full(theirs), Spec: ports}, &corev1.Service{ObjectMeta: named(theirs)}},
		"another kind":                    {&corev1.Pod{ObjectMeta: full()}, &corev1.Pod{ObjectMeta: full()}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Trim(keeper().kind, test.obj)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.want, Trim(keeper().kind, got)); diff != "" { // client-go may trim an object twice
				t.Error("trimmed twice:", diff)
			}
		})
	}
}
