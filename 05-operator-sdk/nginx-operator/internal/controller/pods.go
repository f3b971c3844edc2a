package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

// nodes returns the names that status.nodes shall have for a live Deployment.
//
// A pod is own when its controller is a ReplicaSet whose controller is the Deployment. Labels do not say
// so, for anybody may write them on a pod; nor do names, for anybody may choose them. UIDs are given by the
// API server. So the chain is followed by UIDs, in both steps through an index: what is read are the
// Deployment's ReplicaSets, a few, and their pods.
func (r *NginxReconciler) nodes(ctx context.Context, deployment *appsv1.Deployment) ([]string, error) {
	if deployment.UID == "" {
		return nil, nil
	}
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.controlledBy(ctx, sets, deployment.Namespace, deployment.UID); err != nil {
		return nil, fmt.Errorf("list ReplicaSets of Deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	var all []corev1.Pod
	for _, set := range sets.Items {
		pods := &corev1.PodList{}
		if err := r.controlledBy(ctx, pods, deployment.Namespace, set.UID); err != nil {
			return nil, fmt.Errorf("list pods of ReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
		}
		all = append(all, pods.Items...)
	}
	return running(all), nil
}

// controlledBy lists what a controller has. The list is only read, so nothing is copied for it.
func (r *NginxReconciler) controlledBy(ctx context.Context, list client.ObjectList, namespace string, controller types.UID) error {
	return r.PodReader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{byController: string(controller)},
		client.UnsafeDisableDeepCopy)
}

// running returns the names of the pods that run, sorted: in the order of a cache, which is none, equal
// lists would differ. There are at most MaxNodes, the first ones.
//
// A pod runs from the moment when its containers are started until somebody deletes it, be it through the
// eviction API, or its phase becomes Failed: so ends a pod that its node's kubelet evicted. A pod on a lost
// node has the phase Running until the cluster gives the node up and deletes the pod, by default after
// five minutes. Until then it is in this list, and not among the ready ones.
func running(pods []corev1.Pod) (names []string) {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp.IsZero() {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), proxyv1alpha1.MaxNodes)]
}
