package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// reconcileDeleteJob creates the Job that deletes the backups, and ends the deletion when that has succeeded.
func (r *DatabaseBackupReconciler) reconcileDeleteJob(
	ctx context.Context, b *databasesv1.DatabaseBackup,
) (requeueAfter time.Duration, err error) {
	if b.Spec.Image == "" && r.Image == "" {
		return 0, r.reportDeletion(ctx, b, explain(databasesv1.ReasonDeleteFailed,
			"spec.image is missing: set it, or set spec.deletionPolicy to Retain"))
	}
	desired, o := desiredDelete(b, r.Image), observed{now: r.Clock.Now()}
	if err := r.observeJobs(ctx, b, componentDelete, desired.Name, &o); err != nil {
		return 0, err
	}
	if job := o.job(desired.Name); job != nil {
		return r.followDeleteJob(ctx, b, job, o)
	}
	if why := r.refusalOf(b, nil); why != nil {
		why.message += "; or set spec.deletionPolicy to Retain"
		return 0, r.reportDeletion(ctx, b, *why)
	}
	err = r.createJob(ctx, desired)
	if errors.Is(err, errNamespaceTerminating) { // no Job is possible any more, and a claim is deleted too
		log.FromContext(ctx).Info("Left the backups of a deleted DatabaseBackup", "why", err.Error())
		return 0, r.reconcileFinalizer(ctx, b, false)
	}
	if refused, ok := errors.AsType[conditionError](err); ok {
		return retryRefused, r.reportDeletion(ctx, b, refused.explanation)
	}
	if err != nil {
		return 0, err
	}
	return r.followDeleteJob(ctx, b, desired, o)
}

// followDeleteJob handles the end of the Job that deletes the backups. pgbackup reports that they are deleted; an
// image without pgbackup may succeed and delete nothing. Without a result, the success of the Job counts only when its
// pod is gone.
func (r *DatabaseBackupReconciler) followDeleteJob(
	ctx context.Context, b *databasesv1.DatabaseBackup, job *batchv1.Job, o observed,
) (requeueAfter time.Duration, err error) {
	before, end := condition(b.Status.Conditions, databasesv1.ConditionReady), finished(job)
	blocker := podBlocker(job.Name, o, before)
	result, known := outcomeOf(job, o.pods, o.now)
	podsGone := end != nil && end.Type == batchv1.JobComplete && len(o.pods) == 0
	why := explanation{reason: databasesv1.ReasonDeleting}
	switch {
	case result.succeeded, podsGone && before.Reason != databasesv1.ReasonDeleteFailed:
		return 0, r.reconcileFinalizer(ctx, b, false)
	case end == nil && blocker != nil:
		why = *blocker
	case end == nil:
		why.message = fmt.Sprintf("Job %s deletes the backups", job.Name)
	case before.Reason == databasesv1.ReasonDeleteFailed:
		return 0, nil // the reason was reported, by pods that may be gone now
	case !known:
		why.message = fmt.Sprintf("Job %s has ended, and its pod does not report how yet", job.Name)
	default:
		result.because(blocker)
		why = explanation{databasesv1.ReasonDeleteFailed,
			result.message + ": delete Job " + job.Name + " to try again, or set spec.deletionPolicy to Retain"}
	}
	err = r.reportDeletion(ctx, b, why)
	if !o.checkPodsAt.IsZero() {
		requeueAfter = sleep(o.checkPodsAt, o.now)
	}
	return requeueAfter, err
}

// reportDeletion writes the progress of the deletion into the status.
func (r *DatabaseBackupReconciler) reportDeletion(
	ctx context.Context, b *databasesv1.DatabaseBackup, why explanation,
) error {
	status := *b.Status.DeepCopy()
	status.NextScheduleTime, status.ActiveJob, status.InProgress, status.ObservedGeneration = nil, "", false, b.Generation
	setter{&status.Conditions, b.Generation, r.Clock.Now()}.to(databasesv1.ConditionReady, metav1.ConditionFalse, why)
	return client.IgnoreNotFound(r.updateStatus(ctx, b, status, nil))
}
