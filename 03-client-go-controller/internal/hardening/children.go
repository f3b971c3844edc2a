package hardening

import (
	"cmp"
	"errors"
	"time"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by the checks of fault/21 and fault/34: a child that must wait, or that an admission policy changed, does
// not stop the others; and by fault/24-too-large.

// RequeueAfter is returned instead of doing something now: it can be done after this time.
type RequeueAfter time.Duration

// Error implements error.
func (e RequeueAfter) Error() string { return "not before " + time.Duration(e).String() }

// ApplyAll applies children in order, and returns together what they report. While one has to wait, the status
// does, too. Any error of another kind ends it at once.
func ApplyAll(children []*myweb.Child, apply func(*myweb.Child) error) (*myweb.ConditionError, error) {
	var all []*myweb.ConditionError
	var notYet RequeueAfter
	for _, child := range children {
		err := apply(child)
		if blocked, ok := errors.AsType[*myweb.ConditionError](err); ok {
			if all = append(all, blocked); blocked.Reason == webv1.ReasonChildRejected {
				break // without their page, pods must not be rolled
			}
		} else if wait, ok := errors.AsType[RequeueAfter](err); ok {
			notYet = cmp.Or(min(notYet, wait), wait)
		} else if err != nil {
			return nil, err
		}
	}
	if notYet > 0 {
		return nil, notYet
	}
	return myweb.Combine(all), nil
}
