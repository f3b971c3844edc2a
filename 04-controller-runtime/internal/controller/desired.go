package controller

import (
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

const (
	// fieldOwner owns the fields that this operator applies.
	fieldOwner = client.FieldOwner("myweb-operator")

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"

	// annotationPageHash on the pod template makes a changed page roll the pods.
	annotationPageHash = "operator.k8s-summit.org/page-hash"

	pageFile  = "index.html"
	pagePath  = "/usr/share/nginx/html"
	nginxUser = 101 // the user "nginx" of the official image
)

// writablePaths are where nginx writes, as the official image and Debian's build it. The pods do not
// run as root, so each gets an empty volume.
var writablePaths = []struct{ volume, path string }{
	{"run", "/run"}, {"cache", "/var/cache/nginx"}, {"lib", "/var/lib/nginx"},
}

// A child is an object that a MyWeb owns.
type child struct {
	kind string
	// want is what the child shall be. Only what it names is owned by this operator.
	want runtime.ApplyConfiguration
	// meta is the metadata of want.
	meta *metav1ac.ObjectMetaApplyConfiguration
	// live is what the child is; nil when there is none.
	live client.Object
	// empty is an object of the child's type, to read one into.
	empty func() client.Object
}

// children are all that a MyWeb owns, in the order in which they are applied.
type children []*child

// desiredChildren returns what a MyWeb shall own. Nothing is known yet of what it owns already.
func desiredChildren(web *webv1.MyWeb) children {
	page, pods, service := desiredPage(web), desiredPods(web), desiredService(web)
	return children{
		{kind: "ConfigMap", want: page, meta: page.ObjectMetaApplyConfiguration,
			empty: func() client.Object { return &corev1.ConfigMap{} }},
		{kind: "Deployment", want: pods, meta: pods.ObjectMetaApplyConfiguration,
			empty: func() client.Object { return &appsv1.Deployment{} }},
		{kind: "Service", want: service, meta: service.ObjectMetaApplyConfiguration,
			empty: func() client.Object { return &corev1.Service{} }},
	}
}

// pods is the live Deployment that web controls, empty when there is none.
func (c children) pods(web *webv1.MyWeb) *appsv1.Deployment {
	for _, child := range c {
		if pods, ok := child.live.(*appsv1.Deployment); ok && belongsTo(pods, web) {
			return pods
		}
	}
	return &appsv1.Deployment{}
}

// service is the live Service that web controls, empty when there is none.
func (c children) service(web *webv1.MyWeb) *corev1.Service {
	for _, child := range c {
		if service, ok := child.live.(*corev1.Service); ok && belongsTo(service, web) {
			return service
		}
	}
	return &corev1.Service{}
}

func desiredPage(web *webv1.MyWeb) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithOwnerReferences(controlledBy(web)).
		WithData(map[string]string{pageFile: page(web)})
}

func desiredPods(web *webv1.MyWeb) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithOwnerReferences(controlledBy(web)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicas(web)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(web))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels(web)).
				WithAnnotations(map[string]string{annotationPageHash: pageHash(web)}).
				WithSpec(desiredPod(web))))
}

// desiredPod meets the restricted Pod Security Standard.
func desiredPod(web *webv1.MyWeb) *corev1ac.PodSpecApplyConfiguration {
	nginx := corev1ac.Container().
		WithName("nginx").
		WithImage(web.Spec.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(80)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/").WithPort(intstr.FromString("http"))).
			WithPeriodSeconds(2)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("page").WithMountPath(pagePath).WithReadOnly(true))
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nginxUser).WithRunAsGroup(nginxUser).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
			// Port 80, without being root.
			WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))).
		WithVolumes(corev1ac.Volume().WithName("page").
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(web.Name)))
	for _, w := range writablePaths {
		nginx.WithVolumeMounts(corev1ac.VolumeMount().WithName(w.volume).WithMountPath(w.path))
		pod.WithVolumes(corev1ac.Volume().WithName(w.volume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	return pod.WithContainers(nginx)
}

// desiredService names a node port only when the MyWeb does. Without it the API server allocates one,
// and keeps it when the Service is applied again.
func desiredService(web *webv1.MyWeb) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP).
		WithTargetPort(intstr.FromString("http"))
	port.NodePort = web.Spec.NodePortNumber
	return corev1ac.Service(web.Name, web.Namespace).
		WithLabels(labels(web)).
		WithOwnerReferences(controlledBy(web)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeNodePort).
			WithSelector(selector(web)).
			WithPorts(port))
}

// selector finds the pods of one MyWeb. It can never change, so it holds neither image nor version.
func selector(web *webv1.MyWeb) map[string]string {
	return map[string]string{labelName: "myweb", labelInstance: web.Name}
}

func labels(web *webv1.MyWeb) map[string]string {
	return map[string]string{labelName: "myweb", labelInstance: web.Name,
		labelPartOf: "operator-workshop", labelManagedBy: string(fieldOwner)}
}

// controlledBy makes the garbage collector remove a child with its MyWeb. blockOwnerDeletion is left
// out: it needs a further permission and only matters for deletion in the foreground.
func controlledBy(web *webv1.MyWeb) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(webv1.SchemeGroupVersion.String()).WithKind("MyWeb").
		WithName(web.Name).WithUID(web.UID).WithController(true)
}

func page(web *webv1.MyWeb) string {
	if web.Spec.PageContentHTML == nil {
		return ""
	}
	return *web.Spec.PageContentHTML
}

func pageHash(web *webv1.MyWeb) string {
	sum := sha256.Sum256([]byte(page(web)))
	return hex.EncodeToString(sum[:8])
}

// replicas is 1 when the MyWeb does not say: objects that were stored before the CRD had its default.
func replicas(web *webv1.MyWeb) int32 {
	if web.Spec.Replicas == nil {
		return 1
	}
	return *web.Spec.Replicas
}
