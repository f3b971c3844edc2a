package owned

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Demanded by behaviour/10-cost-of-three-pods and behaviour/11-annotated: two status writes from creation to completed,
// however many pods there are, and none because a user annotates the Deployment.

// Stalled is how long a rollout must make no progress before the operator reports a part of it.
const Stalled = 5 * time.Second

// StatusDelay returns how long the write of a status can wait, 0 for not at all. The conditions were was, and become is.
//   - The Deployment controller has not observed a new generation of the Deployment: its report is about to change, and
//     a watch delivers the change. A Deployment that was just created has observed no generation.
//   - The change is only a step of a rollout. A rollout that makes progress is not reported pod by pod; a stalled rollout
//     is reported.
func StatusDelay(was, is []metav1.Condition, deployment *appsv1.Deployment, now time.Time) time.Duration {
	stays := func(kind string) bool {
		return equality.Semantic.DeepEqual(meta.FindStatusCondition(was, kind), meta.FindStatusCondition(is, kind))
	}
	observed := deployment.Status.ObservedGeneration
	if 0 < observed && observed < deployment.Generation && deployment.DeletionTimestamp.IsZero() &&
		stays(Degraded) && !meta.IsStatusConditionTrue(is, Degraded) {
		return Stalled
	}
	isStep := stays(Degraded) && stays(Progressing) && meta.IsStatusConditionTrue(is, Progressing) &&
		(meta.IsStatusConditionTrue(is, Available) || !meta.IsStatusConditionTrue(was, Available))
	if rollout := RolloutOf(deployment); isStep && rollout != nil {
		return max(0, rollout.LastUpdateTime.Add(Stalled).Sub(now))
	}
	return 0
}
