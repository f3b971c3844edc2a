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

// nodes returns the names for status.nodes, for a live Deployment.
//
// A pod is the Nginx's own when its controller is a ReplicaSet whose controller is the Deployment. Labels and names do
// not prove that, because any user may choose them for a pod. The API server assigns UIDs. So nodes follows
// the chain by UIDs, in both steps through an index: it reads only the Deployment's ReplicaSets and their pods.
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

// controlledBy lists the objects of a controller. The list is only read, so the objects are not copied.
func (r *NginxReconciler) controlledBy(ctx context.Context, list client.ObjectList, namespace string,
	controller types.UID) error {
	return r.Pods.List(ctx, list, client.InNamespace(namespace),
		client.MatchingFields{controllerField: string(controller)}, client.UnsafeDisableDeepCopy)
}

// running returns the names of the running pods, at most the first MaxNodes. They are sorted, because a cache
// returns pods in no fixed order.
//
// A pod runs from the start of its containers until a client deletes it, also through the eviction API, or until its
// phase becomes Failed, for example when the kubelet of its node evicts it. A pod on a lost node has the phase Running
// until the cluster deletes the pod, by default after five minutes. Until then it is in this list, but it is not
// ready.
func running(pods []corev1.Pod) (names []string) {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp.IsZero() {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), proxyv1alpha1.MaxNodes)]
}
