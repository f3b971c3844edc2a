package owned

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJoin(t *testing.T) {
	conflict, mutated := Errorf(ReasonResourceConflict, "c"), Errorf(ReasonChildMutated, "m")
	waiting := Transientf(ReasonWaitingForDeletion, "w")
	rejected := &ConditionError{Reason: ReasonChildRejected, Message: "r", RetryAfter: time.Second}
	for name, test := range map[string]struct {
		all  []error
		want *ConditionError
	}{
		"none":                  {[]error{nil, nil}, nil},
		"one":                   {[]error{nil, waiting}, waiting},
		"several":               {[]error{conflict, mutated}, Errorf(ReasonResourceConflict, "c; m")},
		"a transient one first": {[]error{waiting, mutated}, mutated},
		"one that must be retried": {
			[]error{mutated, rejected}, &ConditionError{Reason: ReasonChildMutated, Message: "m; r", RetryAfter: time.Second}},
		"the shortest wait counts": {[]error{rejected, &ConditionError{Reason: "F", Message: "f", RetryAfter: time.Hour}},
			&ConditionError{Reason: ReasonChildRejected, Message: "r; f", RetryAfter: time.Second}},
	} {
		err := Join(test.all...)
		if diff := cmp.Diff(test.want, AsCondition(err)); diff != "" || err != nil && test.want == nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	failed := errors.New("connection refused")
	if err := Join(mutated, failed, nil); !errors.Is(err, failed) || AsCondition(err) != nil {
		t.Errorf("a failure of the API server is not reported, and tried again: got %v", err)
	}
}
