// Package objects makes the children of a MyWeb as plain objects, as most tutorials do. Stages 2 to 5 use it;
// from stage 6 on the apply configurations of internal/myweb take its place.
package objects

import (
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// NewConfigMap returns the ConfigMap that holds the page.
func NewConfigMap(web *webv1.MyWeb) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(web), Data: map[string]string{"index.html": page(web)}}
}

// NewDeployment returns the Deployment whose pods serve the page. Pods do not read it again, so they carry its
// hash: a changed page changes their template, and the Deployment replaces them.
func NewDeployment(web *webv1.MyWeb) *appsv1.Deployment {
	hash := sha256.Sum256([]byte(page(web)))
	return &appsv1.Deployment{ObjectMeta: meta(web), Spec: appsv1.DeploymentSpec{
		Replicas: new(ptr.Deref(web.Spec.Replicas, 1)), // since Go 1.26 new(x) is a pointer to a copy of x
		Selector: &metav1.LabelSelector{MatchLabels: labels(web)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      labels(web),
				Annotations: map[string]string{"operator.k8s-summit.org/page-hash": hex.EncodeToString(hash[:8])},
			},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name:         "nginx",
					Image:        web.Spec.Image,
					Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
					VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}},
				}},
				Volumes: []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: web.Name}},
				}}},
			},
		},
	}}
}

// NewService returns the Service that opens the node port.
func NewService(web *webv1.MyWeb) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(web), Spec: corev1.ServiceSpec{
		Type:     corev1.ServiceTypeNodePort,
		Selector: labels(web),
		Ports: []corev1.ServicePort{{
			Name: "http", Port: 80, TargetPort: intstr.FromString("http"), NodePort: ptr.Deref(web.Spec.NodePortNumber, 0),
		}},
	}}
}

func meta(web *webv1.MyWeb) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: web.Name, Namespace: web.Namespace, Labels: labels(web)}
}

func labels(web *webv1.MyWeb) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": web.Name}
}

func page(web *webv1.MyWeb) string { return ptr.Deref(web.Spec.PageContentHTML, "") }
