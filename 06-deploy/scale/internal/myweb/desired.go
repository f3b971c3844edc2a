// Package myweb decides what the children and the status of a MyWeb should be. Its functions are pure: they take objects
// and return objects, without a client, a context or a clock. Chapter 03, on client-go, has the same functions.
package myweb

import (
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// FieldOwner is the field manager of this operator: it owns the fields that the operator applies.
const FieldOwner = "myweb-operator"

// Kind is the kind of the owners of children.
var Kind = owned.Kind{GroupVersionKind: webv1.SchemeGroupVersion.WithKind("MyWeb")}

// DesiredChildren returns all children of a MyWeb, in the order in which they are applied. Their live state is empty.
func DesiredChildren(web *webv1.MyWeb) []*owned.Child {
	configMap, deployment, service := DesiredConfigMap(web), DesiredDeployment(web), DesiredService(web)
	children := []*owned.Child{
		{Kind: "ConfigMap", Needed: true,
			Desired: configMap, Meta: configMap.ObjectMetaApplyConfiguration, Live: &corev1.ConfigMap{}},
		{Kind: "Deployment", Desired: deployment, Meta: deployment.ObjectMetaApplyConfiguration, Live: &appsv1.Deployment{}},
		{Kind: "Service", Desired: service, Meta: service.ObjectMetaApplyConfiguration, Live: &corev1.Service{}},
	}
	for _, child := range children {
		Kind.Own(web, child)
	}
	// A Service that is created again keeps its port. A live Service keeps its own, because any client may write a status.
	if port := &service.Spec.Ports[0]; port.NodePort == nil && web.Status.NodePort != 0 {
		children[2].BeforeCreate = func() { port.NodePort = new(web.Status.NodePort) }
	}
	return children
}

// LiveOf returns the live Deployment and Service among the children of DesiredChildren.
func LiveOf(children []*owned.Child) (*appsv1.Deployment, *corev1.Service) {
	return children[1].Live.(*appsv1.Deployment), children[2].Live.(*corev1.Service)
}

// DesiredConfigMap returns the ConfigMap that holds the page.
func DesiredConfigMap(web *webv1.MyWeb) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithData(map[string]string{"index.html": page(web)})
}

// DesiredDeployment returns the Deployment whose pods serve the page.
func DesiredDeployment(web *webv1.MyWeb) *appsv1ac.DeploymentApplyConfiguration {
	hash := sha256.Sum256([]byte(page(web)))
	return appsv1ac.Deployment(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicas(web)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(web))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels(web)).
				// A changed page changes the template, so the Deployment replaces the pods.
				WithAnnotations(map[string]string{"operator.k8s-summit.org/page-hash": hex.EncodeToString(hash[:8])}).
				WithSpec(desiredPod(web))))
}

// desiredPod meets the restricted Pod Security Standard: nginx is not root, so each path that it writes to is a volume.
func desiredPod(web *webv1.MyWeb) *corev1ac.PodSpecApplyConfiguration {
	nginx := corev1ac.Container().
		WithName("nginx").
		WithImage(web.Spec.Image).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(80).WithProtocol(corev1.ProtocolTCP)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/").WithPort(intstr.FromString("http"))).
			WithPeriodSeconds(2)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("page").WithMountPath("/usr/share/nginx/html").WithReadOnly(true),
			corev1ac.VolumeMount().WithName("run").WithMountPath("/run"),
			corev1ac.VolumeMount().WithName("cache").WithMountPath("/var/cache/nginx"),
			corev1ac.VolumeMount().WithName("lib").WithMountPath("/var/lib/nginx"))
	return corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(101).WithRunAsGroup(101). // "nginx" of the official image
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
			// Port 80, without being root.
			WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))).
		WithContainers(nginx).
		WithVolumes(
			corev1ac.Volume().WithName("page").WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(web.Name)),
			corev1ac.Volume().WithName("run").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			corev1ac.Volume().WithName("cache").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			corev1ac.Volume().WithName("lib").WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
}

// DesiredService returns the Service. When the spec names no node port, the API server allocates one, and keeps it.
func DesiredService(web *webv1.MyWeb) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP).
		WithTargetPort(intstr.FromString("http"))
	port.NodePort = web.Spec.NodePortNumber
	return corev1ac.Service(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(selector(web)).
			WithPorts(port))
}

// selector finds the pods of one MyWeb. It can never change, so it holds neither an image nor a version.
func selector(web *webv1.MyWeb) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": web.Name}
}

func labels(web *webv1.MyWeb) map[string]string {
	labels := selector(web)
	labels["app.kubernetes.io/part-of"] = "operator-workshop"
	labels["app.kubernetes.io/managed-by"] = FieldOwner
	return labels
}

func page(web *webv1.MyWeb) string { return ptr.Deref(web.Spec.PageContentHTML, "") }

// replicas returns 1 when the MyWeb sets no number: it was stored before the CRD had its default.
func replicas(web *webv1.MyWeb) int32 { return ptr.Deref(web.Spec.Replicas, 1) }
