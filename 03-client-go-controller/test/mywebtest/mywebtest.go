// Package mywebtest makes the objects that the tests of chapters 03 and 04 share.
package mywebtest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// New returns a MyWeb as a cache would hold it, with the given changes.
func New(change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	web := &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1", Generation: 3},
		Spec: webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)),
			PageContentHTML: new("<h1>Hello</h1>")},
	}
	for _, f := range change {
		f(web)
	}
	return web
}

// Owned returns a ConfigMap with an owner reference to a MyWeb, and with the given changes.
func Owned(name string, uid types.UID, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "c-1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: webv1.SchemeGroupVersion.String(), Kind: "MyWeb",
			Name: name, UID: uid, Controller: new(true)}}}}
	for _, f := range change {
		f(c)
	}
	return c
}

// Ownerless takes the owner reference away.
func Ownerless(c *corev1.ConfigMap) { c.OwnerReferences = nil }

// OwnerKind changes the kind in the owner reference.
func OwnerKind(apiVersion, kind string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.OwnerReferences[0].APIVersion, c.OwnerReferences[0].Kind = apiVersion, kind
	}
}

// An Object is a Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Unmanaged returns an object without a controller.
func Unmanaged(kind, namespace, name string) Object {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	switch kind {
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"mine": "yes"}}
	case "Deployment":
		labels := map[string]string{"app": "other"}
		return &appsv1.Deployment{ObjectMeta: m,
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	default:
		return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
}
