package controller

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// reconcileJobs creates the Job that the status names, and deletes surplus Jobs. requeueAfter is the delay before the
// next try, 0 when everything is done.
func (r *DatabaseBackupReconciler) reconcileJobs(
	ctx context.Context, b *databasesv1.DatabaseBackup, o observed,
) (requeueAfter time.Duration, err error) {
	runnable := len(Missing(b, r.Image)) == 0 && o.notAllowed == nil
	toDelete, create := surplus(b, &b.Status, o), pending(&b.Status, o) && runnable
	if len(toDelete) == 0 && !create {
		return 0, nil
	}
	if err := r.checkCurrent(ctx, b); errors.Is(err, errStale) {
		return retryStale, nil
	} else if err != nil {
		return 0, err
	}
	for _, job := range toDelete {
		if err := r.deleteJob(ctx, job); err != nil {
			return 0, err
		}
		if finished(job) == nil {
			r.recordEvent(b, "Backup", explain(databasesv1.ReasonReplaced, "Job %s was deleted for the run after it", job.Name))
		}
	}
	if !create {
		return 0, nil
	}
	err = r.startRun(ctx, b)
	if refused, ok := errors.AsType[conditionError](err); ok {
		return r.reportRefusal(ctx, b, refused.explanation, o.now)
	}
	if errors.Is(err, errNamespaceTerminating) {
		return 0, nil
	}
	return 0, err
}

// startRun creates the Job that the status names, and before the first Job the Secret with the password of the
// repository. A pod of an earlier run, whose Job is gone, must have ended: two pods of one host name do not respect each
// other's lock.
func (r *DatabaseBackupReconciler) startRun(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	pod, err := r.runningPod(ctx, b)
	if err != nil {
		return err
	}
	if pod != "" {
		return conditionError{explain(databasesv1.ReasonEarlierPodRuns, "Pod %s of an earlier run has not ended", pod)}
	}
	if err := r.createPassword(ctx, b); err != nil {
		return err
	}
	return r.createJob(ctx, desiredBackup(b, b.Status.ActiveJob, r.Image))
}

// reportRefusal writes into the status why a Job is not created. When another Job has the name, the run has ended. When
// the API server refuses the Job, the run is tried again until it is too late.
func (r *DatabaseBackupReconciler) reportRefusal(
	ctx context.Context, b *databasesv1.DatabaseBackup, why explanation, now time.Time,
) (time.Duration, error) {
	status := *b.Status.DeepCopy()
	set := setter{&status.Conditions, b.Generation, now}
	var ended *outcome
	if why.reason == databasesv1.ReasonJobNameTaken {
		ended = &outcome{explanation: why, at: now}
		recordOutcome(&status, ended, set)
	} else {
		set.to(databasesv1.ConditionReady, metav1.ConditionFalse, why)
	}
	return retryRefused, r.updateStatus(ctx, b, status, ended)
}
