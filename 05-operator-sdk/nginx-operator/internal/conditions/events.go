package conditions

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
