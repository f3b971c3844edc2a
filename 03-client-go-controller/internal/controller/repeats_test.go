package controller

import "testing"

func TestWhatLastsIsSaidOnce(t *testing.T) {
	r := newRepeats()
	for i, step := range []struct {
		subject, text string
		isNew         bool
	}{
		{"a", "x", true}, {"a", "x", false}, {"b", "x", true}, {"a", "y", true}, {"a", "x", true}, {"b", "x", false},
	} {
		if got := r.isNew(step.subject, step.text); got != step.isNew {
			t.Errorf("step %d: %q about %s is new: %v", i, step.text, step.subject, got)
		}
	}
	r.forget("a")
	if !r.isNew("a", "x") {
		t.Error("what was forgotten is not new")
	}
	if r.isNew("b", "x") {
		t.Error("another subject was forgotten too")
	}
}
