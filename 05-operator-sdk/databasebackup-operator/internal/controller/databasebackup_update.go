package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// updateStatus writes the status if it differs from the status that was read, and then records the change: events,
// metrics, log lines. The write has the resourceVersion that was read: when another replica wrote in between, the API
// server refuses it.
func (r *DatabaseBackupReconciler) updateStatus(
	ctx context.Context, b *databasesv1.DatabaseBackup, status databasesv1.DatabaseBackupStatus, ended *outcome,
) error {
	key := client.ObjectKeyFromObject(b)
	r.Metrics.begin(key)
	old := b.Status
	if equality.Semantic.DeepEqual(old, status) {
		return nil
	}
	b.Status = status
	if err := r.Status().Update(ctx, b, fieldOwner); err != nil {
		return fmt.Errorf("update status of DatabaseBackup %s: %w", key, err)
	}
	if began(old, status) {
		r.recordEvent(b, "Backup", explain(databasesv1.ReasonStarted, "Job %s was created", status.ActiveJob))
	}
	if ended != nil {
		r.recordEvent(b, "Backup", ended.explanation)
		if ended.notVerified != nil {
			r.recordEvent(b, "Verify", *ended.notVerified)
		}
	}
	r.recordTransition(b, "Backup", condition(old.Conditions, databasesv1.ConditionReady),
		condition(status.Conditions, databasesv1.ConditionReady))
	logger := log.FromContext(ctx)
	if began(old, status) || ended != nil && !old.InProgress { // a run may end before it was seen to start
		r.Metrics.started(key)
		job := status.ActiveJob
		if ended != nil {
			job = status.LastJob
		}
		logger.Info("Run started", "job", job)
	}
	if ended != nil {
		r.Metrics.ended(key, ended)
		logger.Info("Run ended", "job", status.LastJob, "succeeded", ended.succeeded, "reason", ended.reason, "message",
			ended.message, "seconds", ended.seconds)
	}
	return nil
}

// began reports whether a Job is seen for the first time. The start is recorded here and not where the Job is created,
// because the Job may exist although the response to its creation was lost.
func began(old, status databasesv1.DatabaseBackupStatus) bool {
	return status.InProgress && (!old.InProgress || old.ActiveJob != status.ActiveJob)
}

// condition returns the condition of a type, or the zero value.
func condition(conditions []metav1.Condition, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(conditions, kind), metav1.Condition{})
}
