package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

const (
	// FieldOwner owns the fields that this operator applies.
	FieldOwner = client.FieldOwner("nginx-operator")

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"

	contentPath = "/usr/share/nginx/html"
	nginxUser   = 101 // the user "nginx" of the official image
)

// DefaultImage is used when NGINX_IMAGE is not set.
const DefaultImage = "nginx:1.29-alpine"

// writablePaths are the folders in which the nginx of the official image and of Debian writes. The rest of the
// file system is read-only, so each folder gets an empty volume.
var writablePaths = []struct{ volume, path string }{
	{"run", "/run"}, {"cache", "/var/cache/nginx"}, {"lib", "/var/lib/nginx"},
}

// desired returns the desired children of an Nginx. image is used if the Nginx has none; hash is the hash of the
// content, empty without content.
func desired(nginx *proxyv1alpha1.Nginx, image, hash string) (deployment, service *owned.Child) {
	pods, endpoint := desiredDeployment(nginx, image, hash), desiredService(nginx)
	deployment = &owned.Child{
		Kind: "Deployment", Desired: pods, Meta: pods.ObjectMetaApplyConfiguration, Live: &appsv1.Deployment{}}
	service = &owned.Child{
		Kind: "Service", Desired: endpoint, Meta: endpoint.ObjectMetaApplyConfiguration, Live: &corev1.Service{}}
	Owner.Own(nginx, deployment)
	Owner.Own(nginx, service)
	return deployment, service
}

func desiredDeployment(nginx *proxyv1alpha1.Nginx, image, hash string) *appsv1ac.DeploymentApplyConfiguration {
	if nginx.Spec.Image != "" {
		image = nginx.Spec.Image
	}
	template := corev1ac.PodTemplateSpec().WithLabels(labels(nginx)).WithSpec(desiredPod(nginx, image))
	if hash != "" {
		template.WithAnnotations(map[string]string{contentHash: hash})
	}
	return appsv1ac.Deployment(nginx.Name, nginx.Namespace).
		WithLabels(labels(nginx)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(nginx.Spec.Count).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(nginx))).
			WithTemplate(template))
}

// desiredPod meets the restricted Pod Security Standard. A pod is ready when nginx accepts connections: its answer
// depends on the content, which need not have a page at /.
func desiredPod(nginx *proxyv1alpha1.Nginx, image string) *corev1ac.PodSpecApplyConfiguration {
	server := corev1ac.Container().
		WithName("nginx").
		WithImage(image).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(80).WithProtocol(corev1.ProtocolTCP)).
		// Autoscalers compute the utilization from the requests.
		WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		})).
		WithReadinessProbe(corev1ac.Probe().
			WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString("http"))).
			WithPeriodSeconds(2)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nginxUser).WithRunAsGroup(nginxUser).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
			// nginx may listen on port 80 without root.
			WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0")))
	for _, w := range writablePaths {
		server.WithVolumeMounts(corev1ac.VolumeMount().WithName(w.volume).WithMountPath(w.path))
		pod.WithVolumes(corev1ac.Volume().WithName(w.volume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	if content := nginx.Spec.ContentRef; content != nil {
		server.WithVolumeMounts(corev1ac.VolumeMount().WithName("content").WithMountPath(contentPath).WithReadOnly(true))
		pod.WithVolumes(corev1ac.Volume().WithName("content").
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(content.Name)))
	}
	return pod.WithContainers(server)
}

func desiredService(nginx *proxyv1alpha1.Nginx) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(nginx.Name, nginx.Namespace).
		WithLabels(labels(nginx)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(serviceType(nginx)).
			WithSelector(selector(nginx)).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromString("http"))))
}

// serviceType is ClusterIP for an Nginx without a type, which was stored before the CRD had its default.
func serviceType(nginx *proxyv1alpha1.Nginx) corev1.ServiceType {
	if nginx.Spec.Service.Type == "" {
		return corev1.ServiceTypeClusterIP
	}
	return corev1.ServiceType(nginx.Spec.Service.Type)
}

// selector finds the pods of one Nginx. It can never change, so it contains neither image nor version. It
// contains the name of the Nginx, so that no Nginx counts the pods of another Nginx.
func selector(nginx *proxyv1alpha1.Nginx) map[string]string {
	return map[string]string{labelName: "nginx", labelInstance: nginx.Name}
}

func labels(nginx *proxyv1alpha1.Nginx) map[string]string {
	return map[string]string{labelName: "nginx", labelInstance: nginx.Name,
		labelPartOf: string(FieldOwner), labelManagedBy: string(FieldOwner)}
}
