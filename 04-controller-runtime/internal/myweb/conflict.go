package myweb

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// Demanded by the checks of behaviour/06 and by fault/22-orphans and fault/22-held-by-finalizer: the operator
// never changes an object that the MyWeb does not own, and reports all objects in conflict, each with a way to resolve
// it.

// Conflict returns why a MyWeb cannot have a child with the name of a live object. It returns nil when the MyWeb can,
// or when the object does not exist.
func Conflict(web *webv1.MyWeb, kind string, obj metav1.Object) *ConditionError {
	owner, what := metav1.GetControllerOfNoCopy(obj), kind+" "+obj.GetName()
	stale := owner != nil && OwnerUID(obj) == owner.UID && owner.Name == web.Name // of an earlier MyWeb
	switch held := heldBy(obj); {
	case obj.GetUID() == "", IsOwnedBy(obj, web) && obj.GetDeletionTimestamp() == nil:
		return nil
	case (IsOwnedBy(obj, web) || stale) && len(held) > 0:
		return &ConditionError{Reason: webv1.ReasonWaitingForDeletion,
			Message: what + " is being deleted, but its finalizers keep it: the programs that set " +
				strings.Join(held, ", ") + " must remove them"}
	case IsOwnedBy(obj, web):
		return &ConditionError{Reason: webv1.ReasonWaitingForDeletion, Transient: true,
			Message: what + " is being deleted and will be made again"}
	case stale:
		return &ConditionError{Reason: webv1.ReasonWaitingForDeletion, Transient: true,
			Message: what + " belongs to a deleted MyWeb of this name, and the garbage collector will remove it"}
	case owner == nil && OwnerUID(obj) != "":
		return &ConditionError{Reason: webv1.ReasonResourceConflict,
			Message: what + " was left behind by an earlier MyWeb: delete it, or hand it over by setting its annotation " +
				AnnotationApplied + " to " + string(web.UID)}
	default:
		return &ConditionError{Reason: webv1.ReasonResourceConflict,
			Message: what + " exists and is not controlled by this MyWeb: delete or rename it"}
	}
}

// heldBy returns the finalizers that keep an object which is being deleted, apart from the garbage
// collector's own, which ends by itself.
func heldBy(obj metav1.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

// Combine returns one error for several, nil for none. It is transient only when all are transient. Its message lists
// the errors that are not transient, or else all errors.
func Combine(all []*ConditionError) *ConditionError {
	if len(all) == 0 {
		return nil
	}
	first := max(0, slices.IndexFunc(all, func(e *ConditionError) bool { return !e.Transient }))
	combined := *all[first]
	for i, e := range all {
		if i != first && e.Transient == combined.Transient {
			combined.Message += "; " + e.Message
		}
		combined.Retry = combined.Retry || e.Retry
	}
	return &combined
}

// Join returns one error for several, nil for none: the errors that no condition reports, or else all others, combined.
// With an error of the first sort the reconcile writes no status, and is tried again.
func Join(all []error) error {
	var failures []error
	var problems []*ConditionError
	for _, err := range all {
		if problem := AsCondition(err); problem != nil {
			problems = append(problems, problem)
		} else {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil || len(problems) == 0 {
		return err
	}
	return Combine(problems)
}
