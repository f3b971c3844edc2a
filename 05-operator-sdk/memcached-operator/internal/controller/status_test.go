package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// deployment returns a Deployment at a step of a rollout, with a number of ready pods out of three.
func deployment(ready int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 2}, Status: appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: ready, AvailableReplicas: ready,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Reason: "ReplicaSetUpdated", LastUpdateTime: noon}}}}
	for _, f := range change {
		f(d)
	}
	return d
}

func TestStatusFor(t *testing.T) {
	m := sample(t)
	m.Generation = 7
	got := statusFor(m, deployment(2), nil, noon.Time)
	conditions := got.Conditions
	got.Conditions = nil
	want := cachev1alpha1.MemcachedStatus{ObservedGeneration: 7, ReadyReplicas: 2,
		Selector: "app.kubernetes.io/instance=memcached-sample,app.kubernetes.io/name=memcached"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range conditions {
		if c.ObservedGeneration != 7 || !c.LastTransitionTime.Equal(&noon) {
			t.Errorf("%+v", c)
		}
	}
	if len(conditions) != 3 || len(m.Status.Conditions) != 0 {
		t.Errorf("%d conditions; the Memcached has %v", len(conditions), m.Status.Conditions)
	}
}
