package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// missingForRestore lists the fields that a restore needs to run and that neither the restore nor its DatabaseBackup
// has.
func missingForRestore(
	restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup, image string,
) []string {
	return slices.DeleteFunc(Missing(backup, image), func(field string) bool {
		return restore.Spec.TargetRef != nil && strings.HasPrefix(field, "spec.targetRef") ||
			restore.Spec.Auth != nil && strings.HasPrefix(field, "spec.auth")
	})
}

// targetOfRestore is the target server, nil when neither the restore nor its DatabaseBackup names one.
func targetOfRestore(
	restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup,
) *databasesv1.TargetReference {
	if restore.Spec.TargetRef == nil && backup != nil {
		return backup.Spec.TargetRef
	}
	return restore.Spec.TargetRef
}

// waitLimit is how long a restore waits for a DatabaseBackup or a target that does not exist. When a user creates it
// much later, the user does not expect that a restore begins.
const waitLimit = 10 * time.Minute

// restoreStatus computes the status of a restore from the observed state. It also returns a delay for the next
// reconcile, 0 for none. A delay is needed when no watch will report a change: the Job has ended with a result that is
// not known yet, or the restore waits for an object that does not exist.
func restoreStatus(
	restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup, o observed,
) (status databasesv1.DatabaseRestoreStatus, requeueAfter time.Duration) {
	status = *restore.Status.DeepCopy()
	status.ObservedGeneration = restore.Generation
	set := setter{&status.Conditions, restore.Generation, o.now}
	job := o.job(status.JobName)
	if job != nil {
		return status, followRestoreJob(&status, job, restore, o, set)
	}
	if status.InProgress && o.vanished {
		finish(&status, &outcome{at: o.now, explanation: explain(databasesv1.ReasonJobDeleted,
			"Job %s was deleted before its end was seen", status.JobName)}, set)
		return status, 0
	}
	if missing := missingObject(restore, backup, o); missing != nil {
		status.JobName = ""
		left := restore.CreationTimestamp.Add(waitLimit).Sub(o.now)
		if left <= 0 {
			finish(&status, &outcome{at: o.now, explanation: *missing}, set)
			return status, 0
		}
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, *missing)
		return status, left + 10*time.Millisecond
	}
	if fields := missingForRestore(restore, backup, o.image); len(fields) > 0 {
		status.JobName = ""
		why := explain(databasesv1.ReasonIncompleteSpec, "DatabaseBackup %s lacks %s", backup.Name, strings.Join(fields, ", "))
		if restore.Spec.Repository != nil { // no spec can name an image
			why.message = "the operator has no default image for Jobs: an administrator has to set PGBACKUP_IMAGE"
		}
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, why)
		return status, 0
	}
	if status.JobName == "" || !refusals[condition(status.Conditions, databasesv1.ConditionSucceeded).Reason] {
		status.JobName = restore.Name + "-restore"
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, explanation{databasesv1.ReasonRestoring,
			fmt.Sprintf("Job %s is about to be created", status.JobName)})
	}
	return status, 0
}

// missingObject explains which object a restore waits for, or why the restore is not allowed; nil when nothing is
// missing. The password is sent to the target, so its StatefulSet and its Service must exist before a Job does. The
// server need not be ready: pgbackup waits for it.
func missingObject(restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup, o observed) *explanation {
	if backup == nil || !backup.DeletionTimestamp.IsZero() {
		return &explanation{databasesv1.ReasonDatabaseBackupNotFound,
			fmt.Sprintf("DatabaseBackup %s does not exist, or is being deleted", restore.Spec.DatabaseBackupName)}
	}
	if o.notAllowed != nil {
		return o.notAllowed
	}
	if target := targetOfRestore(restore, backup); target != nil {
		return missingTarget(target, o)
	}
	return nil
}

// followRestoreJob updates the status of a restore from its Job.
func followRestoreJob(
	status *databasesv1.DatabaseRestoreStatus, job *batchv1.Job, restore *databasesv1.DatabaseRestore, o observed,
	set setter,
) (requeueAfter time.Duration) {
	end, known := outcomeOf(job, o.pods, o.now)
	blocker := podBlocker(job.Name, o, condition(restore.Status.Conditions, databasesv1.ConditionSucceeded))
	if known {
		end.because(blocker)
		finish(status, &end, set)
		return 0
	}
	status.InProgress = true
	if status.StartTime == nil {
		status.StartTime = metaTime(o.now)
	}
	if blocker == nil {
		blocker = new(explain(databasesv1.ReasonRestoring, "Job %s runs", job.Name))
	}
	set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, *blocker)
	if finished(job) != nil {
		return 2 * time.Second
	}
	if !o.checkPodsAt.IsZero() {
		return sleep(o.checkPodsAt, o.now)
	}
	return 0
}

// refusals are the reasons that createJob gives: they stay until the Job is created.
var refusals = map[string]bool{databasesv1.ReasonJobRejected: true, databasesv1.ReasonJobNameTaken: true}

// finish notes how a restore ended.
func finish(status *databasesv1.DatabaseRestoreStatus, end *outcome, set setter) {
	status.InProgress, status.CompletionTime = false, metaTime(end.at)
	set.to(databasesv1.ConditionSucceeded, conditionStatus(end.succeeded), end.explanation)
	if r := end.ends[verbRestore].result; r != nil {
		status.Restored = r.Restored
	}
}
