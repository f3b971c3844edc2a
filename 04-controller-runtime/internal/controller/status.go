package controller

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// An obstacle keeps a MyWeb from being served. It is told in status; it is no failure of the controller.
type obstacle struct {
	reason, message string
	// passing: it ends without anybody's help, so nothing is wrong.
	passing bool
	// unwatched: no watch tells of its end, so it has to be tried again.
	unwatched bool
}

func (o obstacle) Error() string { return o.message }

// statusFor returns the status of a MyWeb whose children are as given. what is the obstacle that kept
// them from being applied, nil when there was none. A condition's time moves only with its status.
func statusFor(web *webv1.MyWeb, c children, what *obstacle, now time.Time) webv1.MyWebStatus {
	pods, service := c.pods(web), c.service(web)
	status := *web.Status.DeepCopy()
	status.ObservedGeneration = web.Generation
	status.Selector = apilabels.SelectorFromSet(selector(web)).String()
	status.ReadyReplicas = pods.Status.ReadyReplicas
	status.NodePort = nodePort(service)
	status.Completed = what == nil && rolledOut(pods, replicas(web)) && status.NodePort != 0
	degraded := degradedCondition(pods, what)
	for _, condition := range []metav1.Condition{
		availableCondition(web, status.ReadyReplicas),
		progressingCondition(status.Completed, what, degraded),
		degraded,
	} {
		condition.ObservedGeneration, condition.LastTransitionTime = web.Generation, metav1.Time{Time: now}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// rolledOut reports whether exactly the wanted pods run, all of the newest template and ready.
func rolledOut(pods *appsv1.Deployment, replicas int32) bool {
	s := pods.Status
	return pods.UID != "" && pods.DeletionTimestamp.IsZero() && s.ObservedGeneration >= pods.Generation &&
		s.UpdatedReplicas == replicas && s.Replicas == replicas && s.AvailableReplicas == replicas
}

func availableCondition(web *webv1.MyWeb, ready int32) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionAvailable}
	switch {
	case ready > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, webv1.ReasonServing, "pods serve the page"
	case replicas(web) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, webv1.ReasonScaledToZero, "spec.replicas is 0"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, webv1.ReasonNoReadyPod, "no pod is ready"
	}
	return c
}

func progressingCondition(completed bool, what *obstacle, degraded metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case completed:
		c.Reason, c.Message = webv1.ReasonComplete, "the current generation is fully served"
	case degraded.Status == metav1.ConditionTrue:
		c.Reason, c.Message = degraded.Reason, degraded.Message
	case what != nil: // a passing one
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, what.reason, what.message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, webv1.ReasonRollingOut, "pods of the current generation are coming up"
	}
	return c
}

func degradedCondition(pods *appsv1.Deployment, what *obstacle) metav1.Condition {
	c := metav1.Condition{Type: webv1.ConditionDegraded, Status: metav1.ConditionTrue}
	switch progress := progressOf(pods); {
	case what != nil && !what.passing:
		c.Reason, c.Message = what.reason, what.message
	case progress != nil && progress.Reason == "ProgressDeadlineExceeded":
		c.Reason, c.Message = webv1.ReasonProgressDeadlineExceeded, fmt.Sprintf("Deployment: %s", progress.Message)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, webv1.ReasonAsExpected, "nothing is wrong"
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

func nodePort(service *corev1.Service) int32 {
	for _, port := range service.Spec.Ports {
		if port.Name == "http" {
			return port.NodePort
		}
	}
	return 0
}

// stalled is how long a rollout must stand still before a part of it is worth a status write.
const stalled = 5 * time.Second

// untold returns how long the writing of a status can wait; 0 is not at all. A rollout that moves is not
// told pod by pod. One that stands still is told as it is, and so is all that is not a step of a rollout.
//
// A Deployment that somebody touched, if only to annotate it, has a new generation. What that means for the
// pods its controller says a moment later, and a watch tells of it: until then nothing is told.
func untold(old, status webv1.MyWebStatus, pods *appsv1.Deployment, now time.Time) time.Duration {
	if seen := pods.Status.ObservedGeneration; 0 < seen && seen < pods.Generation && pods.DeletionTimestamp.IsZero() &&
		old.ObservedGeneration == status.ObservedGeneration && !meta.IsStatusConditionTrue(status.Conditions, webv1.ConditionDegraded) {
		return stalled
	}
	rest := *status.DeepCopy()
	rest.ReadyReplicas = old.ReadyReplicas
	was, is := meta.FindStatusCondition(old.Conditions, webv1.ConditionAvailable), meta.FindStatusCondition(status.Conditions, webv1.ConditionAvailable)
	if was != nil && is.Status == metav1.ConditionTrue {
		meta.SetStatusCondition(&rest.Conditions, *was)
	}
	if progress := progressOf(pods); progress != nil && equality.Semantic.DeepEqual(rest, old) &&
		meta.IsStatusConditionTrue(status.Conditions, webv1.ConditionProgressing) {
		return max(0, progress.LastUpdateTime.Add(stalled).Sub(now))
	}
	return 0
}
