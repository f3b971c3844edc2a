package env_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The images that kind.sh loads. Nothing fetches them in the local environment.
const (
	webImage = "nginx:latest"
	jobImage = "busybox:1.37"
)

// newDeployment describes two web servers.
func newDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers: []corev1.Container{{
						Name: "web", Image: webImage, ImagePullPolicy: corev1.PullIfNotPresent,
					}},
				},
			},
		},
	}
}

// newJob describes a job whose only command succeeds.
func newJob(name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "job", Image: jobImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Command: []string{"true"},
					}},
				},
			},
		},
	}
}

// newConfigMap describes a ConfigMap. It should be deleted when all its owners are deleted.
func newConfigMap(name string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, owner := range owners {
		cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
		})
	}
	return cm
}

// templateNote returns a merge patch that changes the pod template and nothing else.
func templateNote(text string) (types.PatchType, []byte) {
	return types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"example.com/note":"` + text + `"}}}}}`)
}
