package owned

import (
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Condition types.
const (
	// Available is True while pods of the newest generation that the cluster has observed are ready.
	Available = "Available"
	// Progressing is True while pods are being replaced or added.
	Progressing = "Progressing"
	// Degraded is True while a problem exists that a user has to fix.
	Degraded = "Degraded"
)

// Reasons of conditions, beside those that a controller adds.
const (
	ReasonPodsReady                = "PodsReady"
	ReasonNoReadyPod               = "NoReadyPod"
	ReasonScaledToZero             = "ScaledToZero"
	ReasonRollingOut               = "RollingOut"
	ReasonComplete                 = "Complete"
	ReasonAsExpected               = "AsExpected"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonReplicaFailure           = "ReplicaFailure"
	ReasonDeploymentPaused         = "DeploymentPaused"
	ReasonResourceConflict         = "ResourceConflict"
	ReasonWaitingForDeletion       = "WaitingForDeletion"
	ReasonChildRejected            = "ChildRejected"
	ReasonChildMutated             = "ChildMutated"
	// ReasonRecovered is the reason of the event that reports the end of Degraded.
	ReasonRecovered = "Recovered"
)

// SetConditions sets the three conditions of a resource of a generation. The Deployment should have this number of
// replicas. problem keeps the resource from its desired state; it is nil without a problem. The transition time of a
// condition changes only with its status.
//
// Available waits for the Deployment controller. Until the controller has observed the applied generation, its count of
// ready pods is about the previous generation, and so is the condition. A new Deployment has no count yet.
func SetConditions(conditions *[]metav1.Condition, generation int64, deployment *appsv1.Deployment, replicas int32,
	problem *ConditionError, now time.Time) {
	wrong := problem
	if problem == nil || problem.Transient {
		wrong = rolloutError(deployment, replicas)
	}
	degraded := degraded(wrong)
	set := []metav1.Condition{progressing(problem == nil && rolledOut(deployment, replicas), problem, degraded), degraded}
	observed := deployment.Status.ObservedGeneration
	if observed >= deployment.Generation || observed == 0 || meta.FindStatusCondition(*conditions, Available) == nil {
		set = append(set, available(deployment, replicas))
	}
	for _, condition := range set {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, metav1.Time{Time: now}
		meta.SetStatusCondition(conditions, condition)
	}
}

// IsUnobserved reports whether the Deployment controller has not seen the newest template yet. The status of the
// Deployment is about to change, which will enqueue the resource: the old status can stay until then, unless it reports
// a problem. A new Deployment has no status that could be outdated.
func IsUnobserved(old, now []metav1.Condition, deployment *appsv1.Deployment) bool {
	observed := deployment.Status.ObservedGeneration
	return 0 < observed && observed < deployment.Generation && deployment.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(old, Degraded) && !meta.IsStatusConditionTrue(now, Degraded)
}

// rolledOut reports whether exactly the desired pods run, all of the newest template and available.
func rolledOut(deployment *appsv1.Deployment, replicas int32) bool {
	s := deployment.Status
	return deployment.UID != "" && deployment.DeletionTimestamp.IsZero() &&
		s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas == replicas &&
		s.Replicas == replicas && s.AvailableReplicas == replicas
}

func available(deployment *appsv1.Deployment, replicas int32) metav1.Condition {
	switch {
	case deployment.Status.ReadyReplicas > 0:
		return condition(Available, metav1.ConditionTrue, ReasonPodsReady, "pods are ready")
	case replicas == 0:
		return condition(Available, metav1.ConditionFalse, ReasonScaledToZero, "the spec asks for no pods")
	}
	return condition(Available, metav1.ConditionFalse, ReasonNoReadyPod, "no pod is ready")
}

func progressing(complete bool, problem *ConditionError, degraded metav1.Condition) metav1.Condition {
	switch {
	case complete:
		return condition(Progressing, metav1.ConditionFalse, ReasonComplete,
			"all pods are of the current generation, and ready")
	case degraded.Status == metav1.ConditionTrue:
		return condition(Progressing, metav1.ConditionFalse, degraded.Reason, degraded.Message)
	case problem != nil: // a transient problem
		return condition(Progressing, metav1.ConditionTrue, problem.Reason, problem.Message)
	}
	return condition(Progressing, metav1.ConditionTrue, ReasonRollingOut, "pods of the current generation are coming up")
}

func degraded(problem *ConditionError) metav1.Condition {
	if problem != nil {
		return condition(Degraded, metav1.ConditionTrue, problem.Reason, problem.Message)
	}
	return condition(Degraded, metav1.ConditionFalse, ReasonAsExpected, "nothing is wrong")
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: shorten(message, maxMessage)}
}

// rolloutError returns the problem that keeps a rollout from completing, as the Deployment reports it, or nil. A cause
// comes before the deadline that passes because of it. TestARolloutThatDoesNotEndIsReported of the Nginx operator
// demands it.
func rolloutError(deployment *appsv1.Deployment, replicas int32) *ConditionError {
	s := deployment.Status
	if rolledOut(deployment, replicas) {
		return nil
	}
	if deployment.Spec.Paused && (s.UpdatedReplicas == 0 || s.UpdatedReplicas < s.Replicas) { // scaling continues
		return Errorf(ReasonDeploymentPaused, "Deployment: it is paused, so its pods are not replaced: continue by "+
			"`kubectl rollout resume deployment %s`", deployment.Name)
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue || c.Reason == replicaSetRefused {
			return Errorf(ReasonReplicaFailure, "Deployment: %s: %s", c.Reason, c.Message)
		}
	}
	if rollout := rolloutOf(deployment); rollout != nil && rollout.Reason == "ProgressDeadlineExceeded" {
		return Errorf(ReasonProgressDeadlineExceeded, "Deployment: %s", rollout.Message)
	}
	return nil
}

// replicaSetRefused is the reason of Progressing when the cluster refuses a ReplicaSet. The Deployment controller does
// not count the generation as observed then.
const replicaSetRefused = "ReplicaSetCreateError"

// rolloutOf returns the Deployment's own Progressing condition, or nil if it is not about the newest template.
func rolloutOf(deployment *appsv1.Deployment) *appsv1.DeploymentCondition {
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

// The API server refuses longer texts: an event would be lost, and a status never written. An error message of the
// API server itself can be longer.
const (
	maxNote    = 1024
	maxMessage = 32768
)

// shorten returns at most limit bytes of a text, as whole characters. A shortened text ends in "…".
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// An Event appears below a resource in the output of `kubectl describe`.
type Event struct{ Type, Reason, Note string }

// Events returns the events for a change of conditions. Only transitions become events, so an operator that restarts
// or reconciles again records nothing.
func Events(old, now []metav1.Condition) (events []Event) {
	was, is := find(old, Degraded), find(now, Degraded)
	switch {
	case is.Status == metav1.ConditionTrue && (was.Status != metav1.ConditionTrue || was.Reason != is.Reason):
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, shorten(is.Message, maxNote)})
	case is.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		events = append(events, Event{corev1.EventTypeNormal, ReasonRecovered, shorten("It is over: "+was.Message, maxNote)})
	}
	if find(now, Progressing).Reason == ReasonComplete && find(old, Progressing).Reason != ReasonComplete {
		events = append(events, Event{corev1.EventTypeNormal, ReasonComplete,
			"All pods are of the current generation, and ready"})
	}
	return events
}

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(conditions, kind), metav1.Condition{})
}
