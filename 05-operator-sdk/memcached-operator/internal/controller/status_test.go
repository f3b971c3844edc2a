package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/conditions"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// deployment is one of which so many of three pods are ready, at a step of a rollout.
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

func touched(d *appsv1.Deployment) { d.Generation++ }

func overdue(d *appsv1.Deployment) { d.Status.Conditions[0].Reason = "ProgressDeadlineExceeded" }

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

func TestHowLongAStatusCanWait(t *testing.T) {
	missing := &conditions.ConditionError{Reason: cachev1alpha1.ReasonConfigNotFound, Message: "it does not exist"}
	second := noon.Add(time.Second)
	for name, test := range map[string]struct {
		before, now *appsv1.Deployment
		was, is     *conditions.ConditionError
		newer       bool // the spec changed
		wait        time.Duration
	}{
		"the first pod is ready":              {before: deployment(0), now: deployment(1), wait: 4 * time.Second},
		"one pod more":                        {before: deployment(1), now: deployment(2), wait: 4 * time.Second},
		"the last pod":                        {before: deployment(2), now: deployment(3)},
		"the last pod is lost":                {before: deployment(1), now: deployment(0)},
		"a deadline passed":                   {before: deployment(1), now: deployment(1, overdue)},
		"somebody touched the Deployment":     {before: deployment(3), now: deployment(3, touched), wait: 5 * time.Second},
		"the same, for the spec changed":      {before: deployment(3), now: deployment(3, touched), newer: true},
		"the ConfigMap is gone":               {before: deployment(3), now: deployment(3), is: missing},
		"the ConfigMap is gone, and touched":  {before: deployment(3), now: deployment(3, touched), is: missing},
		"the ConfigMap came, pods are to go":  {before: deployment(3), now: deployment(3, touched), was: missing},
		"the ConfigMap came, all is as it is": {before: deployment(3), now: deployment(3), was: missing},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			m.Generation = 1
			m.Status = statusFor(m, test.before, test.was, noon.Time)
			if test.newer {
				m.Generation++
			}
			status := statusFor(m, test.now, test.is, second)
			if got := statusWriteDelay(m.Status, status, test.now, second); got != test.wait {
				t.Errorf("it can wait %s, want %s", got, test.wait)
			}
		})
	}
}
