// Package conditions computes the conditions of a resource from its Deployment, and from the error that keeps it from
// its desired state.
package conditions

import (
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// DeploymentOf returns a live Deployment, or an empty Deployment when live is nil.
func DeploymentOf(live client.Object) *appsv1.Deployment {
	if deployment, ok := live.(*appsv1.Deployment); ok {
		return deployment
	}
	return &appsv1.Deployment{}
}

// Set sets the three conditions of a resource of a generation. The Deployment should have this number of replicas.
// problem keeps the resource from its desired state; it is nil without a problem. The transition time of a condition
// changes only with its status.
//
// Available waits for the Deployment controller. Until the controller has observed the applied generation, its count of
// ready pods is about the previous generation, and so is the condition. A new Deployment has no count yet.
func Set(conditions *[]metav1.Condition, generation int64, deployment *appsv1.Deployment, replicas int32,
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
		condition.Message = shorten(condition.Message, maxMessage)
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
	c := metav1.Condition{Type: Available, Status: metav1.ConditionFalse}
	switch {
	case deployment.Status.ReadyReplicas > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonPodsReady, "pods are ready"
	case replicas == 0:
		c.Reason, c.Message = ReasonScaledToZero, "the spec asks for no pods"
	default:
		c.Reason, c.Message = ReasonNoReadyPod, "no pod is ready"
	}
	return c
}

func progressing(complete bool, problem *ConditionError, degraded metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: Progressing, Status: metav1.ConditionFalse}
	switch {
	case complete:
		c.Reason, c.Message = ReasonComplete, "all pods are of the current generation, and ready"
	case degraded.Status == metav1.ConditionTrue:
		c.Reason, c.Message = degraded.Reason, degraded.Message
	case problem != nil: // a transient problem
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, problem.Reason, problem.Message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonRollingOut, "pods of the current generation are coming up"
	}
	return c
}

func degraded(problem *ConditionError) metav1.Condition {
	c := metav1.Condition{Type: Degraded, Status: metav1.ConditionFalse, Reason: ReasonAsExpected,
		Message: "nothing is wrong"}
	if problem != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, problem.Reason, problem.Message
	}
	return c
}

// rolloutError returns the problem that keeps a rollout from completing, as the Deployment reports it, or nil. A cause
// comes before the deadline that passes because of it. The tests on a local cluster demand it.
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
