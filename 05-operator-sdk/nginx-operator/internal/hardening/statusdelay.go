package hardening

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/conditions"
)

// Demanded by TestARolloutThatMovesIsNotReportedPodByPod and TestHowLongAStatusCanWait: at most two status writes from
// creation to completed, however many pods there are.

// stalled is how long a rollout must make no progress before a part of it is reported.
const stalled = 5 * time.Second

// TouchedDelay returns how long to wait before the status of a changed Deployment is reported, even if only an
// annotation was changed; 0 for no delay. A moment later the Deployment controller reports what the new generation
// means for the pods, and a watch delivers that. A new generation of the resource does not wait, nor does Degraded.
func TouchedDelay(sameGeneration bool, old, now []metav1.Condition, deployment *appsv1.Deployment) time.Duration {
	observed := deployment.Status.ObservedGeneration
	if 0 < observed && observed < deployment.Generation && deployment.DeletionTimestamp.IsZero() && sameGeneration &&
		!meta.IsStatusConditionTrue(old, conditions.Degraded) && !meta.IsStatusConditionTrue(now, conditions.Degraded) {
		return stalled
	}
	return 0
}

// RolloutDelay returns how long a status write can wait whose conditions differ only by a step of a rollout, 0 for no
// delay. A rollout that makes progress is not reported pod by pod; a rollout that makes none is reported.
func RolloutDelay(old, now []metav1.Condition, deployment *appsv1.Deployment, clock time.Time) time.Duration {
	rest := append([]metav1.Condition(nil), now...)
	was, is := meta.FindStatusCondition(old, conditions.Available), meta.FindStatusCondition(now, conditions.Available)
	if was != nil && is.Status == metav1.ConditionTrue { // the first ready pod is a step like the others
		meta.SetStatusCondition(&rest, *was)
	}
	rollout := conditions.RolloutOf(deployment)
	if rollout == nil || !equality.Semantic.DeepEqual(rest, old) ||
		!meta.IsStatusConditionTrue(now, conditions.Progressing) {
		return 0
	}
	return max(0, rollout.LastUpdateTime.Add(stalled).Sub(clock))
}
