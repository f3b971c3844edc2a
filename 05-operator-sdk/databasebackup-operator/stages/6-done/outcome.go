// Package backup judges how the Job of a backup ended.
package backup

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Outcome reports whether a Job has ended, and whether its backup is done. result is the text that its container left:
// the id of the snapshot that it took, empty when it left nothing.
func Outcome(job *batchv1.Job, result string) (ended, done bool) {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true, c.Type == batchv1.JobComplete && result != ""
		}
	}
	return false, false
}
