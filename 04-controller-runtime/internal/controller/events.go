package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// An event is told to whoever asks `kubectl describe`.
type event struct{ kind, reason, note string }

// eventsFor returns what is worth an event when a status becomes another one: transitions, never states.
// So a controller that starts again, or looks again, has nothing to tell.
func eventsFor(old, status webv1.MyWebStatus) (all []event) {
	was, is := degraded(old), degraded(status)
	switch {
	case is.Status == metav1.ConditionTrue && (was.Status != metav1.ConditionTrue || was.Reason != is.Reason):
		all = append(all, event{corev1.EventTypeWarning, is.Reason, is.Message})
	case is.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		all = append(all, event{corev1.EventTypeNormal, webv1.ReasonRecovered, "It is over: " + was.Message})
	}
	if status.Completed && !old.Completed {
		all = append(all, event{corev1.EventTypeNormal, webv1.ReasonComplete,
			fmt.Sprintf("The current generation is fully served, on node port %d", status.NodePort)})
	}
	return all
}

func degraded(status webv1.MyWebStatus) metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, webv1.ConditionDegraded); c != nil {
		return *c
	}
	return metav1.Condition{}
}
