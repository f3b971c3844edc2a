// Package nginx computes the status of an Nginx.
package nginx

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxNodes limits the names in status.nodes, because each change sends the whole object to every watcher.
const MaxNodes = 100

// Nodes returns the names for status.nodes: the running pods of a Deployment. sets and pods are all ReplicaSets and
// pods with the labels of the Nginx, in any order.
func Nodes(deployment *appsv1.Deployment, sets []appsv1.ReplicaSet, pods []corev1.Pod) (names []string) {
	for i := range pods {
		pod := &pods[i]
		running := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
		own := slices.ContainsFunc(sets, func(set appsv1.ReplicaSet) bool {
			return metav1.IsControlledBy(pod, &set) && metav1.IsControlledBy(&set, deployment)
		})
		if running && own {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), MaxNodes)]
}
