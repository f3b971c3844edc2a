package hardening

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/nginx-operator/internal/conditions"
)

// Demanded by TestAQuotaIsReportedAndRetriedAndStopsNoOtherChild, TestAPolicyThatDislikesASidecarIsReported and
// TestWhatARefusalMeans: a permanent refusal is reported to the user, a temporary failure is not.

// Rejected returns a ConditionError for a write that the API server will refuse at the next try too, because of a
// quota, a policy or an invalid field. Other errors are temporary: a conflict, a busy server, a namespace that is being
// deleted.
func Rejected(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && isForAnotherObject(status.ErrStatus.Details) {
		return apierrors.NewConflict(schema.GroupResource{}, "", err)
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) {
		return &conditions.ConditionError{Reason: conditions.ReasonChildRejected, Message: err.Error(), Retry: true}
	}
	return err
}

// isForAnotherObject reports whether a write had the UID of an object that was replaced by another object of the same
// name. The API server reports that as an invalid change of metadata.uid.
func isForAnotherObject(details *metav1.StatusDetails) bool {
	return details != nil && slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}
