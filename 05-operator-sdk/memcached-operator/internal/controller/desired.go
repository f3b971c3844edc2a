package controller

import (
	"cmp"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

const (
	// FieldOwner owns the fields that this operator applies.
	FieldOwner = client.FieldOwner("memcached-operator")

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"

	// portName is the name of the port, of container and Service.
	portName = "memcached"
	// memcachedUser is the user and group of the official images.
	memcachedUser = 11211
	// graceSeconds is the time for a pod to stop. memcached stops at once, because it has no data to write.
	graceSeconds = 5
)

// answers is a shell script that fails unless memcached's answer on the port $1 matches $2. A tcpSocket probe
// only sees that the port is open, which it still is when memcached hangs. Images have different tools for requests:
// Debian images have bash, which opens connections itself; Alpine images have busybox with nc.
const answers = `{ if command -v bash >/dev/null; then
  bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "version\r\nquit\r\n" >&3 && cat <&3' "$1"
else
  printf 'version\r\nquit\r\n' | nc -w 2 127.0.0.1 "$1"
fi; } | grep -qE "$2"`

// The answers of memcached. A memcached with its maximum number of clients still serves them: it is not ready, so
// it gets no new clients, but it is alive, because a restart would empty its cache.
const (
	isReady = "^VERSION"
	isAlive = "^(VERSION|ERROR Too many open connections)"
)

// desired returns the desired children of a Memcached. image is for a Memcached without an image.
func desired(m *cachev1alpha1.Memcached, config Config, image string) (deployment, service *owned.Child) {
	pods, endpoint := desiredDeployment(m, config, cmp.Or(m.Spec.Image, image)), desiredService(m)
	deployment = &owned.Child{
		Kind: "Deployment", Desired: pods, Meta: pods.ObjectMetaApplyConfiguration, Live: &appsv1.Deployment{}}
	service = &owned.Child{
		Kind: "Service", Desired: endpoint, Meta: endpoint.ObjectMetaApplyConfiguration, Live: &corev1.Service{}}
	Owner.Own(m, deployment)
	Owner.Own(m, service)
	return deployment, service
}

func desiredDeployment(m *cachev1alpha1.Memcached, config Config, image string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(m.Name, m.Namespace).
		WithLabels(labels(m)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(size(m)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(m))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels(m)).
				WithSpec(desiredPod(m, config, image))))
}

// desiredPod meets the restricted Pod Security Standard.
func desiredPod(m *cachev1alpha1.Memcached, config Config, image string) *corev1ac.PodSpecApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).WithRunAsUser(memcachedUser).WithRunAsGroup(memcachedUser).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if port(m) < 1024 { // to listen there without root
		security.WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
	}
	// Request and limit of memory are equal, so the memory that memcached may fill is reserved for it. CPU time
	// has no limit; its request lets autoscalers compute the utilization.
	memory := corev1.ResourceList{corev1.ResourceMemory: config.memory()}
	requests := corev1.ResourceList{corev1.ResourceMemory: config.memory(), corev1.ResourceCPU: resource.MustParse("50m")}
	return corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithTerminationGracePeriodSeconds(graceSeconds).
		WithSecurityContext(security).
		WithContainers(corev1ac.Container().
			WithName("memcached").
			WithImage(image).
			WithCommand("memcached").
			WithArgs(config.args(port(m))...).
			WithPorts(corev1ac.ContainerPort().
				WithName(portName).WithContainerPort(port(m)).WithProtocol(corev1.ProtocolTCP)).
			WithResources(corev1ac.ResourceRequirements().WithRequests(requests).WithLimits(memory)).
			WithReadinessProbe(probe(m, isReady).WithPeriodSeconds(5)).
			// A restart empties the cache, so a busy memcached has a minute to answer.
			WithLivenessProbe(probe(m, isAlive).WithPeriodSeconds(20).WithFailureThreshold(3)).
			WithSecurityContext(corev1ac.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))))
}

func probe(m *cachev1alpha1.Memcached, answer string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithExec(corev1ac.ExecAction().WithCommand("sh", "-c", answers, "answers", strconv.Itoa(int(port(m))), answer)).
		WithTimeoutSeconds(3)
}

func desiredService(m *cachev1alpha1.Memcached) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(m.Name, m.Namespace).
		WithLabels(labels(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector(m)).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).WithPort(port(m)).WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromString(portName))))
}

// selector finds the pods of one Memcached. It can never change, so it contains neither image nor version. It
// contains the Memcached's name, so that two Memcacheds never share a pod.
func selector(m *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{labelName: "memcached", labelInstance: m.Name}
}

func labels(m *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{labelName: "memcached", labelInstance: m.Name,
		labelPartOf: string(FieldOwner), labelManagedBy: string(FieldOwner)}
}

// size is 1 for a Memcached without a size, which was stored before the CRD had its default.
func size(m *cachev1alpha1.Memcached) int32 { return cmp.Or(m.Spec.Size, 1) }

func port(m *cachev1alpha1.Memcached) int32 {
	return cmp.Or(m.Spec.ContainerPort, cachev1alpha1.DefaultPort)
}

// configName returns the name of a Memcached's ConfigMap, empty without one. The webhook writes the default
// into the object; this default is for objects that were written while no webhook ran.
func configName(m *cachev1alpha1.Memcached) string {
	if m.Spec.ConfigRef == nil {
		return ""
	}
	return cmp.Or(m.Spec.ConfigRef.Name, m.Name)
}
