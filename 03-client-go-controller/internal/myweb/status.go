package myweb

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// A ConditionError keeps a MyWeb from being served. Conditions report the error; the operator has not failed.
type ConditionError struct {
	Reason, Message string
	// Transient: the error ends by itself, so the MyWeb is not degraded.
	Transient bool
	// Retry: no watch reports the end of the error, so the operator tries again, with backoff.
	Retry bool
}

// Error implements error.
func (e *ConditionError) Error() string { return e.Message }

// MustRetry reports whether to try again. The decorators of the core set and read Retry; the core does not.
func (e *ConditionError) MustRetry() bool { return e.Retry }

// AsCondition returns the ConditionError that an error is or wraps, nil when there is none.
func AsCondition(err error) *ConditionError {
	problem, _ := errors.AsType[*ConditionError](err)
	return problem
}

// StatusFor returns the status of a MyWeb with the given children, which are empty when they are missing.
// blocked is the error that keeps them from their desired state, nil when there is none. The time of a condition
// changes only with its status.
func StatusFor(web *webv1.MyWeb, deployment *appsv1.Deployment, service *corev1.Service,
	blocked *ConditionError, now time.Time) webv1.MyWebStatus {
	status := *web.Status.DeepCopy()
	status.ObservedGeneration = web.Generation
	status.Selector = apilabels.SelectorFromSet(selector(web)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.NodePort = nodePort(service)
	status.Completed = blocked == nil && rolledOut(deployment, replicas(web)) && status.NodePort != 0
	cause := blocked
	if blocked == nil || blocked.Transient {
		cause = rolloutError(deployment, replicas(web))
	}
	degraded := degradedCondition(cause)
	for _, condition := range []metav1.Condition{
		availableCondition(web, status.ReadyReplicas),
		progressingCondition(status.Completed, blocked, degraded),
		degraded,
	} {
		condition.Message = Shorten(condition.Message, maxMessage)
		condition.ObservedGeneration, condition.LastTransitionTime = web.Generation, metav1.Time{Time: now}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// rolledOut reports whether exactly the desired pods run, all of the newest template and available.
func rolledOut(deployment *appsv1.Deployment, replicas int32) bool {
	s := deployment.Status
	return deployment.UID != "" && deployment.DeletionTimestamp.IsZero() &&
		s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas == replicas &&
		s.Replicas == replicas && s.AvailableReplicas == replicas
}

func availableCondition(web *webv1.MyWeb, ready int32) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case ready > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, webv1.ReasonServing, "pods serve the page"
	case replicas(web) == 0:
		c.Reason, c.Message = webv1.ReasonScaledToZero, "spec.replicas is 0"
	default:
		c.Reason, c.Message = webv1.ReasonNoReadyPod, "no pod is ready"
	}
	return c
}

func progressingCondition(completed bool, blocked *ConditionError, degraded metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case completed:
		c.Reason, c.Message = webv1.ReasonComplete, "the current generation is fully served"
	case degraded.Status == metav1.ConditionTrue:
		c.Reason, c.Message = degraded.Reason, degraded.Message
	case blocked != nil: // a transient one
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, blocked.Reason, blocked.Message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, webv1.ReasonRollingOut, "pods of this generation are coming up"
	}
	return c
}

func degradedCondition(problem *ConditionError) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionDegraded, Status: metav1.ConditionFalse,
		Reason: webv1.ReasonAsExpected, Message: "nothing is wrong"}
	if problem != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, problem.Reason, problem.Message
	}
	return c
}

// rolloutError returns the error that keeps a rollout from its end, from the Deployment and its conditions; nil when
// there is none. A cause comes before the deadline that passes because of it. Demanded by the checks of behaviour/08.
func rolloutError(deployment *appsv1.Deployment, replicas int32) *ConditionError {
	s := deployment.Status
	if rolledOut(deployment, replicas) {
		return nil
	}
	if deployment.Spec.Paused && (s.UpdatedReplicas == 0 || s.UpdatedReplicas < s.Replicas) { // a paused one still scales
		return &ConditionError{Reason: webv1.ReasonDeploymentPaused, Message: "Deployment: it is paused, so its pods are " +
			"not replaced: continue by `kubectl rollout resume deployment " + deployment.Name + "`"}
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue || c.Reason == replicaSetRefused {
			return &ConditionError{Reason: webv1.ReasonReplicaFailure,
				Message: fmt.Sprintf("Deployment: %s: %s", c.Reason, c.Message)}
		}
	}
	if rollout := RolloutOf(deployment); rollout != nil && rollout.Reason == "ProgressDeadlineExceeded" {
		return &ConditionError{Reason: webv1.ReasonProgressDeadlineExceeded, Message: "Deployment: " + rollout.Message}
	}
	return nil
}

// replicaSetRefused is the reason of Progressing when the cluster refuses a ReplicaSet. The Deployment controller does
// not count the generation as observed then.
const replicaSetRefused = "ReplicaSetCreateError"

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

func nodePort(service *corev1.Service) int32 {
	for _, port := range service.Spec.Ports {
		if port.Name == "http" {
			return port.NodePort
		}
	}
	return 0
}

// An Event is an entry that `kubectl describe` shows with a MyWeb.
type Event struct{ Type, Reason, Note string }

// EventsFor returns the events of a change from one status to another: transitions, never states.
// So an operator that restarts, or reconciles again, records nothing.
func EventsFor(old, status webv1.MyWebStatus) (events []Event) {
	was, is := degraded(old), degraded(status)
	switch {
	case is.Status == metav1.ConditionTrue && (was.Status != metav1.ConditionTrue || was.Reason != is.Reason):
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, Shorten(is.Message, maxNote)})
	case is.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		note := Shorten("It is over: "+was.Message, maxNote)
		events = append(events, Event{corev1.EventTypeNormal, webv1.ReasonRecovered, note})
	}
	if status.Completed && !old.Completed {
		events = append(events, Event{corev1.EventTypeNormal, webv1.ReasonComplete,
			fmt.Sprintf("The current generation is fully served, on node port %d", status.NodePort)})
	}
	return events
}

func degraded(status webv1.MyWebStatus) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(status.Conditions, webv1.ConditionDegraded), metav1.Condition{})
}
