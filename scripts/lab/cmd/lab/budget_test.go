package main

import (
	"strings"
	"testing"
)

func TestBudgetMayNotRise(t *testing.T) {
	may := budget{"03": {"creation of 10": {"apply configmaps": 10, "update mywebs/status": 20}}}
	if err := (budget{"03": {"creation of 10": {"apply configmaps": 10,
		"update mywebs/status": 19}}}).within(may); err != nil {
		t.Errorf("fewer requests: %v", err)
	}
	err := (budget{"03": {"creation of 10": {"apply configmaps": 11}}}).within(may)
	if err == nil || !strings.Contains(err.Error(),
		"03, creation of 10, apply configmaps: 11 times, 10 are in the budget") {
		t.Errorf("more requests: %v", err)
	}
	if err := (budget{"03": {"creation of 10": {"get secrets": 1}}}).within(may); err == nil {
		t.Error("a new kind of request passed")
	}
}
