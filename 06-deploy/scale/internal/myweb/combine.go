package myweb

import "example.com/operator-workshop/06-deploy/scale/internal/owned"

// Combine returns one error for several, nil for none. Stages 7 to 9 use it.
func Combine(all []*ConditionError) *ConditionError {
	var errs []error
	for _, err := range all {
		errs = append(errs, err)
	}
	return owned.AsCondition(owned.Join(errs...))
}
