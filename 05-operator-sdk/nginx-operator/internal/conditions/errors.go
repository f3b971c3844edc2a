package conditions

import (
	"errors"
	"fmt"
	"slices"
)

// A ConditionError says why a resource is not in its desired state. The conditions of the resource report it; it is not
// a failure of the operator.
type ConditionError struct {
	// Reason is a CamelCase word, Message a sentence that names what to do.
	Reason, Message string
	// Transient: it ends without anybody's help, so the resource is not degraded.
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

// AsError returns the ConditionError that err is or wraps, nil when there is none.
func AsError(err error) *ConditionError {
	problem, _ := errors.AsType[*ConditionError](err)
	return problem
}

// Combine returns one error for several, of which some may be nil; it returns nil if all are. The result is the worst
// of them, with the messages of all errors of the same sort. A conflict is worst, then an error that does not end by
// itself.
func Combine(all []*ConditionError) error {
	all = slices.DeleteFunc(all, func(e *ConditionError) bool { return e == nil })
	if len(all) == 0 {
		return nil
	}
	rank := func(e *ConditionError) int {
		switch {
		case e.Reason == ReasonResourceConflict:
			return 0
		case !e.Transient:
			return 1
		}
		return 2
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b *ConditionError) int { return rank(a) - rank(b) })
	combined := *all[0]
	for _, e := range all[1:] {
		if e.Transient == combined.Transient {
			combined.Message += "; " + e.Message
		}
		combined.Retry = combined.Retry || e.Retry
	}
	return &combined
}
