package owned

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types.
const (
	// ConditionAvailable is True while pods of the newest generation that the cluster has seen are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while pods are on their way to what the spec says.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while something is wrong that somebody has to mend.
	ConditionDegraded = "Degraded"
)

// Reasons of conditions, beside those of the Obstacles that a controller finds itself.
const (
	ReasonPodsReady                = "PodsReady"
	ReasonNoReadyPod               = "NoReadyPod"
	ReasonScaledToZero             = "ScaledToZero"
	ReasonRollingOut               = "RollingOut"
	ReasonComplete                 = "Complete"
	ReasonAsExpected               = "AsExpected"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonResourceConflict         = "ResourceConflict"
	ReasonWaitingForDeletion       = "WaitingForDeletion"
	ReasonChildRejected            = "ChildRejected"
	// ReasonRecovered is the reason of the event that says that Degraded is over.
	ReasonRecovered = "Recovered"
)

// An Obstacle keeps a resource from being served. It is told in status; it is no failure of the controller.
type Obstacle struct {
	// Reason is a CamelCase word, Message a sentence that says what to do.
	Reason, Message string
	// Passing: it ends without anybody's help, so nothing is wrong.
	Passing bool
	// Unwatched: no watch tells of its end, so it has to be tried again.
	Unwatched bool
}

// Error implements error.
func (o Obstacle) Error() string { return o.Message }

// Pods returns the live Deployment among children that the owner controls, empty when there is none.
func (k *Keeper) Pods(owner metav1.Object, children ...*Child) *appsv1.Deployment {
	for _, child := range children {
		if pods, ok := child.Live.(*appsv1.Deployment); ok && k.Belongs(pods, owner) {
			return pods
		}
	}
	return &appsv1.Deployment{}
}

// RolledOut reports whether exactly so many pods run, all of the newest template and ready.
func RolledOut(pods *appsv1.Deployment, replicas int32) bool {
	s := pods.Status
	return pods.UID != "" && pods.DeletionTimestamp.IsZero() && s.ObservedGeneration >= pods.Generation &&
		s.UpdatedReplicas == replicas && s.Replicas == replicas && s.AvailableReplicas == replicas
}

// Set sets the three conditions of a resource of the given generation, whose Deployment is as given and
// shall have so many replicas; what is the obstacle in the way, nil when there is none. A condition's time
// moves only with its status.
//
// Available waits for the Deployment's own controller: until that has looked at what was applied, its count
// of ready pods speaks of the generation before, and so does the condition. One that is new has no count yet.
func Set(conditions *[]metav1.Condition, generation int64, pods *appsv1.Deployment, replicas int32, what *Obstacle, now time.Time) {
	degraded := degraded(pods, what)
	set := []metav1.Condition{progressing(what == nil && RolledOut(pods, replicas), what, degraded), degraded}
	seen := pods.Status.ObservedGeneration
	if seen >= pods.Generation || seen == 0 || meta.FindStatusCondition(*conditions, ConditionAvailable) == nil {
		set = append(set, available(pods, replicas))
	}
	for _, condition := range set {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, metav1.Time{Time: now}
		meta.SetStatusCondition(conditions, condition)
	}
}

func available(pods *appsv1.Deployment, replicas int32) metav1.Condition {
	c := metav1.Condition{Type: ConditionAvailable}
	switch {
	case pods.Status.ReadyReplicas > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonPodsReady, "pods are ready"
	case replicas == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonScaledToZero, "no pods are asked for"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonNoReadyPod, "no pod is ready"
	}
	return c
}

func progressing(complete bool, what *Obstacle, degraded metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: ConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case complete:
		c.Reason, c.Message = ReasonComplete, "all pods are of the current generation, and ready"
	case degraded.Status == metav1.ConditionTrue:
		c.Reason, c.Message = degraded.Reason, degraded.Message
	case what != nil: // a passing one
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, what.Reason, what.Message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonRollingOut, "pods of the current generation are coming up"
	}
	return c
}

func degraded(pods *appsv1.Deployment, what *Obstacle) metav1.Condition {
	c := metav1.Condition{Type: ConditionDegraded, Status: metav1.ConditionTrue}
	switch progress := progressOf(pods); {
	case what != nil && !what.Passing:
		c.Reason, c.Message = what.Reason, what.Message
	case progress != nil && progress.Reason == "ProgressDeadlineExceeded":
		c.Reason, c.Message = ReasonProgressDeadlineExceeded, fmt.Sprintf("Deployment: %s", progress.Message)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonAsExpected, "nothing is wrong"
	}
	return c
}

// progressOf returns the Deployment's own Progressing condition, when it speaks of its newest template.
func progressOf(pods *appsv1.Deployment) *appsv1.DeploymentCondition {
	if pods.Status.ObservedGeneration < pods.Generation {
		return nil
	}
	for i, c := range pods.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return &pods.Status.Conditions[i]
		}
	}
	return nil
}

// stalled is how long a rollout must stand still before a part of it is worth a status write.
const stalled = 5 * time.Second

// Untouched reports how long to wait before anything is told of a Deployment that somebody touched, if only
// to annotate it: what its new generation means for the pods, its controller says a moment later, and a
// watch tells of it. 0 is not at all.
func Untouched(pods *appsv1.Deployment) time.Duration {
	if seen := pods.Status.ObservedGeneration; 0 < seen && seen < pods.Generation && pods.DeletionTimestamp.IsZero() {
		return stalled
	}
	return 0
}

// Moving returns how long to wait before a step of a rollout is told: one that moves is not told pod by
// pod, one that stands still is told as it is. 0 is not at all.
func Moving(pods *appsv1.Deployment, now time.Time) time.Duration {
	if progress := progressOf(pods); progress != nil {
		return max(0, progress.LastUpdateTime.Add(stalled).Sub(now))
	}
	return 0
}

// An Event is told to whoever asks `kubectl describe`.
type Event struct{ Type, Reason, Note string }

// Events returns what is worth an event when conditions become other ones: transitions, never states. So a
// controller that starts again, or looks again, has nothing to tell.
func Events(old, now []metav1.Condition) (all []Event) {
	was, is := find(old, ConditionDegraded), find(now, ConditionDegraded)
	switch {
	case is.Status == metav1.ConditionTrue && (was.Status != metav1.ConditionTrue || was.Reason != is.Reason):
		all = append(all, Event{corev1.EventTypeWarning, is.Reason, is.Message})
	case is.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		all = append(all, Event{corev1.EventTypeNormal, ReasonRecovered, "It is over: " + was.Message})
	}
	if find(now, ConditionProgressing).Reason == ReasonComplete && find(old, ConditionProgressing).Reason != ReasonComplete {
		all = append(all, Event{corev1.EventTypeNormal, ReasonComplete, "All pods are of the current generation, and ready"})
	}
	return all
}

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
