package owned

import (
	"errors"
	"fmt"
	"slices"
)

// A ConditionError is the reason why a resource is not in its desired state. The conditions of the resource report it;
// it is not a failure of the operator.
type ConditionError struct {
	// Reason is a CamelCase word, Message a sentence that names the fix.
	Reason, Message string
	// Transient: the error ends by itself, so the resource is not degraded.
	Transient bool
	// Retry: no watch reports its end, so the operator tries again, with backoff.
	Retry bool
}

// Errorf returns a ConditionError that lasts until a user fixes the cause. A watch reports the fix.
func Errorf(reason, format string, args ...any) *ConditionError {
	return &ConditionError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Transientf returns a ConditionError that ends by itself.
func Transientf(reason, format string, args ...any) *ConditionError {
	return &ConditionError{Reason: reason, Message: fmt.Sprintf(format, args...), Transient: true}
}

// Error implements error.
func (e *ConditionError) Error() string { return e.Message }

// MustRetry reports whether to try again.
func (e *ConditionError) MustRetry() bool { return e.Retry }

// AsError returns the ConditionError that err is or wraps, or nil.
func AsError(err error) *ConditionError {
	problem, _ := errors.AsType[*ConditionError](err)
	return problem
}

// Join returns one error for several errors, or nil if all are nil. If some of them are not a ConditionError, it
// returns those. Otherwise it returns the worst ConditionError, with the messages of all of the same sort. A conflict
// is worst, then an error that does not end by itself.
func Join(all ...error) error {
	var failures []error
	var problems []*ConditionError
	for _, err := range all {
		if problem := AsError(err); problem != nil {
			problems = append(problems, problem)
		} else {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil || len(problems) == 0 {
		return err
	}
	slices.SortStableFunc(problems, func(a, b *ConditionError) int { return a.rank() - b.rank() })
	combined := *problems[0]
	for _, e := range problems[1:] {
		if e.Transient == combined.Transient {
			combined.Message += "; " + e.Message
		}
		combined.Retry = combined.Retry || e.Retry
	}
	return &combined
}

func (e *ConditionError) rank() int {
	switch {
	case e.Reason == ReasonResourceConflict:
		return 0
	case !e.Transient:
		return 1
	}
	return 2
}
