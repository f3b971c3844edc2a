package backup

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

func TestOutcome(t *testing.T) {
	type status = batchv1.JobStatus
	has := func(kind batchv1.JobConditionType) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: "Suspended", Status: "False"}, {Type: kind, Status: "True"}}
	}
	for name, test := range map[string]struct {
		status      status
		result      string
		ended, done bool
	}{
		"was just created":         {},
		"runs":                     {status: status{Active: 1}},
		"is between two tries":     {status: status{Failed: 1}},
		"has a pod that succeeded": {status: status{Succeeded: 1}, result: "1a2b3c4d"},
		"is about to fail":         {status: status{Active: 1, Conditions: has(batchv1.JobFailureTarget)}},
		"is about to complete": {status: status{Active: 1, Conditions: has(batchv1.JobSuccessCriteriaMet)},
			result: "1a2b3c4d"},
		"has a condition that is not": {status: status{Active: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobComplete, Status: "False"}}}},
		"failed": {status: status{Failed: 2, Conditions: has(batchv1.JobFailed)},
			ended: true},
		"failed after a try succeeded": {status: status{Succeeded: 1, Conditions: has(batchv1.JobFailed)},
			result: "1a2b3c4d", ended: true},
		"completed after a failed try": {status: status{Failed: 1, Succeeded: 1, Conditions: has(batchv1.JobComplete)},
			result: "1a2b3c4d", ended: true, done: true},
		"completed and left no result": {status: status{Succeeded: 1, Conditions: has(batchv1.JobComplete)},
			ended: true},
	} {
		ended, done := Outcome(&batchv1.Job{Status: test.status}, test.result)
		if ended != test.ended {
			t.Errorf("a Job that %s: ended is %t, want %t", name, ended, test.ended)
		}
		if test.ended && done != test.done {
			t.Errorf("a Job that %s: done is %t, want %t", name, done, test.done)
		}
	}
}
