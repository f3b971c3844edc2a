package myweb

import (
	"cmp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/fields"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// stored returns a Deployment as the API server would store it, with defaults.
func stored(t *testing.T) *owned.Child {
	t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1"},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	child, d := DesiredChildren(web)[1], &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Of(child.Desired), d); err != nil {
		t.Fatal(err)
	}
	d.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // a typed cache has none
	d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
	pod := &d.Spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy = corev1.RestartPolicyAlways, corev1.DNSClusterFirst
	pod.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP
	pod.Containers[0].ReadinessProbe.FailureThreshold = 3
	pod.Volumes[0].ConfigMap.DefaultMode = new(int32(0o644))
	child.Live = d
	return child
}

func TestWhatDiffersInADeployment(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   string
	}{
		"defaults of the API server": {func(*appsv1.Deployment) {}, ""},
		"labels and annotations of others": {func(d *appsv1.Deployment) {
			d.Labels["team"], d.Annotations["note"], d.Spec.Template.Annotations["restarted-at"] = "blue", "mine", "noon"
		}, ""},
		"a sidecar, first": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "proxy"}}, pod.Containers...)
		}, ""},
		"a volume and a mount of others": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "token"})
			pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "token"})
		}, ""},
		"a second owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, ""},
		"another status": {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 9 }, ""},
		"another image": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
			"spec.template.spec.containers[nginx].image"},
		"other replicas": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, "spec.replicas"},
		"no replicas":    {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, "spec.replicas"},
		"no owner":       {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, "metadata.ownerReferences[u-1]"},
		"a label gone": {func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/part-of") },
			"metadata.labels.app.kubernetes.io/part-of"},
		"another hash": {func(d *appsv1.Deployment) { d.Annotations[Kind.Annotation()] = "u-1/x" },
			"metadata.annotations.operator.k8s-summit.org/applied"},
		"a capability": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Drop = nil },
			"spec.template.spec.containers[nginx].securityContext.capabilities.drop"},
		"another page": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations["operator.k8s-summit.org/page-hash"] = "x" },
			"spec.template.metadata.annotations.operator.k8s-summit.org/page-hash"},
		"a writable mount": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].VolumeMounts[0].ReadOnly = false },
			"spec.template.spec.containers[nginx].volumeMounts[/usr/share/nginx/html].readOnly"},
		"the port of the container": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 81 },
			"spec.template.spec.containers[nginx].ports[http].containerPort"},
		"a container gone, and the replicas": {
			func(d *appsv1.Deployment) { d.Spec.Replicas = nil; d.Spec.Template.Spec.Containers = nil },
			"spec.replicas"},
		"a container renamed": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "x" },
			"spec.template.spec.containers[nginx]"},
	} {
		t.Run(name, func(t *testing.T) {
			child := stored(t)
			test.change(child.Live.(*appsv1.Deployment))
			live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Live)
			if err != nil {
				t.Fatal(err)
			}
			got := "" // the first difference
			for _, d := range fields.Differences(fields.Of(child.Desired), live) {
				got = cmp.Or(got, d.Path.String())
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
