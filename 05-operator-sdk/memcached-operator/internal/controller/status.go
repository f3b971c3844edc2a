package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// statusFor returns the status of a Memcached whose Deployment is as given. what is the obstacle that kept
// its children from being applied, nil when there was none.
func statusFor(m *cachev1alpha1.Memcached, pods *appsv1.Deployment, what *owned.Obstacle, now time.Time) cachev1alpha1.MemcachedStatus {
	status := *m.Status.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.Selector = apilabels.SelectorFromSet(selector(m)).String()
	status.ReadyReplicas = pods.Status.ReadyReplicas
	owned.Set(&status.Conditions, m.Generation, pods, size(m), what, now)
	return status
}

// untold returns how long the writing of a status can wait; 0 is not at all. A rollout that moves is not
// told pod by pod, nor is it told that somebody touched the Deployment. All else is, and at once when something
// goes wrong, or is over.
func untold(old, status cachev1alpha1.MemcachedStatus, pods *appsv1.Deployment, now time.Time) time.Duration {
	degraded := meta.IsStatusConditionTrue(old.Conditions, owned.ConditionDegraded) ||
		meta.IsStatusConditionTrue(status.Conditions, owned.ConditionDegraded)
	if wait := owned.Untouched(pods); wait > 0 && old.ObservedGeneration == status.ObservedGeneration && !degraded {
		return wait
	}
	rest := *status.DeepCopy()
	rest.ReadyReplicas = old.ReadyReplicas
	was, is := meta.FindStatusCondition(old.Conditions, owned.ConditionAvailable), meta.FindStatusCondition(status.Conditions, owned.ConditionAvailable)
	if was != nil && is.Status == metav1.ConditionTrue { // the first ready pod is a step like the others
		meta.SetStatusCondition(&rest.Conditions, *was)
	}
	if equality.Semantic.DeepEqual(rest, old) && meta.IsStatusConditionTrue(status.Conditions, owned.ConditionProgressing) {
		return owned.Moving(pods, now)
	}
	return 0
}
