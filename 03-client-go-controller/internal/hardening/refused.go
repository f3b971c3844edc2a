package hardening

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by the checks of fault/24, fault/31, fault/32 and fault/35: a refusal that lasts is reported.

// Refused turns an error of an apply into a condition when the API server will refuse the next try, too. Other
// errors pass, like a conflict or a busy server.
func Refused(err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return &myweb.ConditionError{Reason: webv1.ReasonChildRejected, Message: err.Error(), Retry: true}
	}
	return err
}
