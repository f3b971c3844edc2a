// Package nginx computes the status of an Nginx.
package nginx

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// MaxNodes limits the names in status.nodes, because each change sends the whole object to every watcher.
const MaxNodes = 100

// Nodes returns the names for status.nodes: the running pods of a Deployment. sets and pods are all ReplicaSets and
// pods with the labels of the Nginx, in any order.
func Nodes(_ *appsv1.Deployment, _ []appsv1.ReplicaSet, pods []corev1.Pod) (names []string) {
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	return names
}
