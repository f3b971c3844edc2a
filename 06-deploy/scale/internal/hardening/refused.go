package hardening

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// Demanded by the checks of fault/24, fault/31, fault/32 and fault/35: a refusal that lasts is reported.

// refused turns an error of an apply into an error that the status reports, when the API server will refuse the next
// try, too: no watch reports the end of a refusal, so it is tried again with backoff. Other errors pass: a conflict, a
// busy server, a namespace that is being deleted.
func (m *memory) refused(kind string, err error) error {
	if owned.AsCondition(err) != nil {
		return err
	}
	// Another object has the name by now: the API server calls that an invalid change of metadata.uid.
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			if cause.Field == "metadata.uid" {
				return apierrors.NewConflict(schema.GroupResource{}, "", err)
			}
		}
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return &owned.ConditionError{Reason: owned.ReasonChildRejected, Message: err.Error(),
			RetryAfter: m.refusals.When(kind)}
	}
	return err
}
