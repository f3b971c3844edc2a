package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/operator-workshop/03-client-go-controller/internal/owned"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by behaviour/10-cost-of-three-pods and behaviour/11-annotated: at most two status writes from
// creation to completed, however many pods there are, and none because a user annotates the Deployment.

// stalled is how long a rollout must make no progress before its partial state is worth a status write.
const stalled = 5 * time.Second

// statusWriteDelay returns how long the write of a status can wait, 0 for not at all. A rollout that makes progress is
// not reported pod by pod: only a change of the ready pods waits, until the Deployment has not changed for some time.
//
// A Deployment that a client changed, even only an annotation, has a new generation. The Deployment controller reports
// the effect on the pods a moment later, and a watch delivers it: until then the status is not written.
func statusWriteDelay(old, status webv1.MyWebStatus, deployment *appsv1.Deployment, now time.Time) time.Duration {
	if observed := deployment.Status.ObservedGeneration; 0 < observed && observed < deployment.Generation &&
		deployment.DeletionTimestamp.IsZero() && old.ObservedGeneration == status.ObservedGeneration &&
		!meta.IsStatusConditionTrue(status.Conditions, owned.Degraded) {
		return stalled
	}
	rest := *status.DeepCopy()
	rest.ReadyReplicas = old.ReadyReplicas
	was := meta.FindStatusCondition(old.Conditions, owned.Available)
	if was != nil && meta.IsStatusConditionTrue(status.Conditions, owned.Available) {
		meta.SetStatusCondition(&rest.Conditions, *was)
	}
	rollout := owned.RolloutOf(deployment)
	if rollout != nil && equality.Semantic.DeepEqual(rest, old) &&
		meta.IsStatusConditionTrue(status.Conditions, owned.Progressing) {
		return max(0, rollout.LastUpdateTime.Add(stalled).Sub(now))
	}
	return 0
}
