package owned

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Types of the conditions of an owner.
const (
	Available   = "Available"   // at least one pod is ready, even one of an older generation
	Progressing = "Progressing" // the pods are not those of the current generation yet
	Degraded    = "Degraded"    // a problem keeps the owner from its desired state until a user fixes it
)

// Reasons of conditions and events, beside those that an operator adds.
const (
	ReasonServing                  = "Serving"
	ReasonNoReadyPod               = "NoReadyPod"
	ReasonScaledToZero             = "ScaledToZero"
	ReasonRollingOut               = "RollingOut"
	ReasonComplete                 = "Complete"
	ReasonAsExpected               = "AsExpected"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded" // the Deployment gave up waiting for its pods
	ReasonReplicaFailure           = "ReplicaFailure"           // the cluster refuses pods: a quota, Pod Security, a webhook
	ReasonDeploymentPaused         = "DeploymentPaused"         // a rollout waits until a user resumes the Deployment
	ReasonResourceConflict         = "ResourceConflict"         // an unmanaged object has the name of a child
	ReasonWaitingForDeletion       = "WaitingForDeletion"       // an object with that name is being deleted
	ReasonChildRejected            = "ChildRejected"            // the API server refuses a child: a quota, a policy
	ReasonChildMutated             = "ChildMutated"             // a policy or a webhook changes what the operator sets
	ReasonRecovered                = "Recovered"                // of an event only: a reported problem is over
)

// SetConditions sets the three conditions of an owner of a generation, whose Deployment should have this number of
// replicas. blocked is the error that keeps the children from their desired state, nil when there is none. It returns
// whether the generation is complete. The time of a condition changes only with its status.
func SetConditions(conditions *[]metav1.Condition, generation int64, deployment *appsv1.Deployment, replicas int32,
	blocked *ConditionError, now time.Time) (completed bool) {
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			Message: shorten(message), ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now}})
	}
	switch {
	case deployment.Status.ReadyReplicas > 0:
		set(Available, metav1.ConditionTrue, ReasonServing, "pods are ready")
	case replicas == 0:
		set(Available, metav1.ConditionFalse, ReasonScaledToZero, "the spec asks for no pods")
	default:
		set(Available, metav1.ConditionFalse, ReasonNoReadyPod, "no pod is ready")
	}
	completed, problem := blocked == nil && rolledOut(deployment, replicas), blocked
	if blocked == nil || blocked.Transient {
		problem = rolloutError(deployment, replicas)
	}
	switch {
	case completed:
		set(Progressing, metav1.ConditionFalse, ReasonComplete, "all pods are of the current generation, and ready")
	case problem != nil:
		set(Progressing, metav1.ConditionFalse, problem.Reason, problem.Message)
	case blocked != nil: // a transient one
		set(Progressing, metav1.ConditionTrue, blocked.Reason, blocked.Message)
	default:
		set(Progressing, metav1.ConditionTrue, ReasonRollingOut, "pods of the current generation are coming up")
	}
	if problem != nil {
		set(Degraded, metav1.ConditionTrue, problem.Reason, problem.Message)
	} else {
		set(Degraded, metav1.ConditionFalse, ReasonAsExpected, "nothing is wrong")
	}
	return completed
}

// rolledOut reports whether exactly the desired pods run, all of the newest template and available.
func rolledOut(deployment *appsv1.Deployment, replicas int32) bool {
	s := deployment.Status
	return deployment.UID != "" && deployment.DeletionTimestamp.IsZero() &&
		s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas == replicas &&
		s.Replicas == replicas && s.AvailableReplicas == replicas
}

// rolloutError returns the error that keeps a rollout from its end, from the Deployment and its conditions; nil when
// there is none. A cause comes before the deadline that passes because of it. Demanded by the checks of behaviour/08.
func rolloutError(deployment *appsv1.Deployment, replicas int32) *ConditionError {
	s := deployment.Status
	if rolledOut(deployment, replicas) {
		return nil
	}
	if deployment.Spec.Paused && (s.UpdatedReplicas == 0 || s.UpdatedReplicas < s.Replicas) { // a paused one still scales
		return Errorf(ReasonDeploymentPaused, "Deployment: it is paused, so its pods are not replaced: continue by "+
			"`kubectl rollout resume deployment %s`", deployment.Name)
	}
	for _, c := range s.Conditions {
		isRefused := c.Reason == "ReplicaSetCreateError" // of Progressing; then the generation never counts as observed
		if isRefused || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return Errorf(ReasonReplicaFailure, "Deployment: %s: %s", c.Reason, c.Message)
		}
	}
	if rollout := RolloutOf(deployment); rollout != nil && rollout.Reason == "ProgressDeadlineExceeded" {
		return Errorf(ReasonProgressDeadlineExceeded, "Deployment: %s", rollout.Message)
	}
	return nil
}

// RolloutOf returns the Deployment's own Progressing condition, nil unless it is about the newest template.
func RolloutOf(deployment *appsv1.Deployment) *appsv1.DeploymentCondition {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return nil
	}
	for i, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}

// An Event is an entry that `kubectl describe` shows with an owner.
type Event struct{ Type, Reason, Note string }

// Events returns the events of a change of conditions: transitions, never states. A restart records nothing.
func Events(old, now []metav1.Condition) (events []Event) {
	was, is := find(old, Degraded), find(now, Degraded)
	switch {
	case is.Status == metav1.ConditionTrue && (was.Status != metav1.ConditionTrue || was.Reason != is.Reason):
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, is.Message})
	case is.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		events = append(events, Event{corev1.EventTypeNormal, ReasonRecovered, "It is over: " + was.Message})
	}
	if progress := find(now, Progressing); progress.Reason == ReasonComplete &&
		find(old, Progressing).Reason != ReasonComplete {
		events = append(events, Event{corev1.EventTypeNormal, ReasonComplete, progress.Message})
	}
	return events
}

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(conditions, kind), metav1.Condition{})
}

// shorten returns at most 1000 bytes of a text, in whole characters. Demanded by fault/36-long-message: the API server
// would refuse an event with a note of more than 1024 bytes.
func shorten(text string) string {
	if len(text) <= 1000 {
		return text
	}
	return strings.ToValidUTF8(text[:1000-len("…")], "") + "…"
}
