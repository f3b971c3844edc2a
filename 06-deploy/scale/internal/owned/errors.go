package owned

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A ConditionError keeps an owner from its desired state. Conditions report the error; the operator has not failed.
type ConditionError struct {
	Reason, Message string
	// Transient: the error ends by itself, so the owner is not degraded.
	Transient bool
	// RetryAfter is the time to the next try when no watch reports the end of the error, 0 when one does.
	RetryAfter time.Duration
}

// Error implements error.
func (e *ConditionError) Error() string { return e.Message }

// Errorf returns a ConditionError that lasts until a user fixes the cause. A watch reports the fix.
func Errorf(reason, format string, args ...any) *ConditionError {
	return &ConditionError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Transientf returns a ConditionError that ends by itself.
func Transientf(reason, format string, args ...any) *ConditionError {
	return &ConditionError{Reason: reason, Message: fmt.Sprintf(format, args...), Transient: true}
}

// AsCondition returns the ConditionError that an error is or wraps, nil when there is none.
func AsCondition(err error) *ConditionError {
	problem, _ := errors.AsType[*ConditionError](err)
	return problem
}

// Join returns one error for several, nil for none: the errors that no condition reports, or else one ConditionError.
// That is transient only when all are transient, and its message lists the errors that are not transient, or else all.
func Join(all ...error) error {
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
	first := max(0, slices.IndexFunc(problems, func(e *ConditionError) bool { return !e.Transient }))
	combined := *problems[first]
	for i, e := range problems {
		if i != first && e.Transient == combined.Transient {
			combined.Message += "; " + e.Message
		}
		if combined.RetryAfter == 0 || 0 < e.RetryAfter && e.RetryAfter < combined.RetryAfter {
			combined.RetryAfter = e.RetryAfter
		}
	}
	return &combined
}
