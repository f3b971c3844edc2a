// Package mywebtest holds the shared parts of the tests of the operators of chapters 03 and 04: objects, and tables of
// cases that both must handle alike.
package mywebtest

import (
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// BadSpecs are changes that make a MyWeb invalid, with the field that the API server reports, and its message.
func BadSpecs() map[string]struct {
	Change      func(*webv1.MyWeb)
	Field, Says string
} {
	return map[string]struct {
		Change      func(*webv1.MyWeb)
		Field, Says string
	}{
		"no image":            {func(w *webv1.MyWeb) { w.Spec.Image = "" }, "spec.image", "at least 1 char"},
		"a blank in an image": {func(w *webv1.MyWeb) { w.Spec.Image = "ng inx" }, "spec.image", "must be an image reference"},
		"a port too low": {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = new(int32(29999)) }, "spec.nodePortNumber",
			"greater than or equal to 30000"},
		"a port too high": {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = new(int32(32768)) }, "spec.nodePortNumber",
			"less than or equal to 32767"},
		"eleven pods": {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(11)) }, "spec.replicas",
			"less than or equal to 10"},
		"less than no pod": {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(-1)) }, "spec.replicas",
			"greater than or equal to 0"},
		"too long a page": {func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new(strings.Repeat("x", 40001)) },
			"spec.pageContentHtml", "40000"},
		"a name of no label": {func(w *webv1.MyWeb) { w.Name = "1st" }, "metadata", "start with a letter"},
	}
}

// Refusals are errors of an apply of a Service, with the reason of the condition that reports each. The reason is empty
// for an error that the next try may not meet.
func Refusals() map[string]struct {
	Err    error
	Reason string
} {
	serviceKind, serviceResource := schema.GroupKind{Kind: "Service"}, schema.GroupResource{Resource: "services"}
	invalid := func(err *field.Error) error {
		return apierrors.NewInvalid(serviceKind, "site", field.ErrorList{err})
	}
	const rejected, port = webv1.ReasonChildRejected, webv1.ReasonNodePortUnavailable
	path := field.NewPath("spec", "ports").Index(0)
	terminating := apierrors.NewForbidden(serviceResource, "site", fmt.Errorf("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return map[string]struct {
		Err    error
		Reason string
	}{
		"a node port that is taken": {
			invalid(field.Invalid(path.Child("nodePort"), 30100, "provided port is already allocated")), port},
		"a node port out of range": {
			invalid(field.Invalid(path.Child("nodePort"), 80, "provided port is not in the valid range")), rejected},
		"something else is taken": {invalid(field.Invalid(field.NewPath("spec", "clusterIPs"), "1.2.3.4",
			"provided IP is already allocated")), rejected},
		"an invalid field": {invalid(field.Invalid(path.Child("port"), 0, "must be between 1 and 65535")), rejected},
		"a quota, a policy": {
			apierrors.NewForbidden(serviceResource, "site", fmt.Errorf("exceeded quota: none")), rejected},
		"a webhook says no":     {apierrors.NewBadRequest("admission webhook denied the request"), rejected},
		"too large":             {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), rejected},
		"a conflict":            {apierrors.NewConflict(serviceResource, "site", fmt.Errorf("uid mismatch")), ""},
		"it exists by now":      {apierrors.NewAlreadyExists(serviceResource, "site"), ""},
		"too many requests":     {apierrors.NewTooManyRequests("slow down", 1), ""},
		"a server that is busy": {apierrors.NewServiceUnavailable("starting"), ""},
		"an internal error":     {apierrors.NewInternalError(fmt.Errorf("etcd")), ""},
		"no answer in time":     {apierrors.NewServerTimeout(serviceResource, "patch", 1), ""},
		"a gateway's timeout": {
			apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", serviceResource, "site", "", 0, true), ""},
		"a certificate that ran out": {apierrors.NewUnauthorized("expired"), ""},
		"the namespace ends":         {terminating, ""},
		"the network":                {fmt.Errorf("connection reset by peer"), ""},
	}
}
