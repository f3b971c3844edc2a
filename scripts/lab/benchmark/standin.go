package benchmark

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// standIn plays the Deployment controller in all namespaces until the returned function is called: all pods of a
// Deployment are there, new and ready, as soon as its spec demands them.
func (s *stage) standIn(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cfg := rest.CopyConfig(s.Config)
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	var working sync.WaitGroup
	err = follow(ctx, &working, func() (watch.Interface, error) {
		return kube.AppsV1().Deployments("").Watch(ctx, metav1.ListOptions{})
	}, func(e watch.Event) {
		d, ok := e.Object.(*appsv1.Deployment)
		if !ok || e.Type == watch.Deleted || d.Status.ObservedGeneration >= d.Generation {
			return
		}
		working.Go(func() {
			d.Status = ready(d)
			for {
				_, err := kube.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
				// When the Deployment has changed or is gone, the watch reports it.
				if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
					fixture.Pause(ctx, 100*time.Millisecond) != nil {
					return
				}
			}
		})
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { cancel(); working.Wait() }, nil
}

// ready is the status of a Deployment whose rollout is complete.
func ready(d *appsv1.Deployment) appsv1.DeploymentStatus {
	n, now := ptr.Deref(d.Spec.Replicas, 1), metav1.Now()
	condition := func(kind appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason,
			LastUpdateTime: now, LastTransitionTime: now}
	}
	return appsv1.DeploymentStatus{ObservedGeneration: d.Generation,
		Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable"),
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable"),
		}}
}
