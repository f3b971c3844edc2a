package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func TestWhatTheCacheKeeps(t *testing.T) {
	ours := metav1.OwnerReference{APIVersion: "cache.example.com/v1alpha1", Kind: "Memcached", Name: "site",
		UID: "u-1", Controller: new(true)}
	full := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7",
			Labels: map[string]string{"a": "b"}, OwnerReferences: owners}
	}
	named := metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7"}
	pods := appsv1.DeploymentSpec{Replicas: new(int32(3))}
	for name, test := range map[string]struct{ obj, want any }{
		"a Memcached": {&cachev1alpha1.Memcached{ObjectMeta: full()}, &cachev1alpha1.Memcached{ObjectMeta: full()}},
		"a ConfigMap that may be named": {
			&corev1.ConfigMap{ObjectMeta: full(), Data: map[string]string{"memoryMB": "1", "verbose": "", "x": "much"}},
			&corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"memoryMB": "1", "verbose": ""}}},
		"a ConfigMap of others": {
			&corev1.ConfigMap{ObjectMeta: full(), Data: map[string]string{"x": "much"}, BinaryData: map[string][]byte{"b": {1}}},
			&corev1.ConfigMap{ObjectMeta: named}},
		"a Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods},
			&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods}},
		"a Deployment of others": {&appsv1.Deployment{ObjectMeta: full(), Spec: pods}, &appsv1.Deployment{ObjectMeta: named}},
		"a Service of others": {&corev1.Service{ObjectMeta: full(), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}},
			&corev1.Service{ObjectMeta: named}},
		"not an object": {"text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(test.obj)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
			twice, err := Trim(got) // client-go may trim an object twice
			if diff := cmp.Diff(test.want, twice); diff != "" || err != nil {
				t.Error("trimmed twice:", diff, err)
			}
		})
	}
}
