package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// reconcileFinalizer adds the finalizer to a DatabaseBackup whose backups are deleted with it, before a Job writes to
// the repository. It removes the finalizer if the backups stay. The patch has the resourceVersion that was read,
// because a merge patch replaces the whole list of finalizers.
func (r *DatabaseBackupReconciler) reconcileFinalizer(
	ctx context.Context, b *databasesv1.DatabaseBackup, wanted bool,
) error {
	before := b.DeepCopy()
	change := controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	if !change(b, databasesv1.FilesFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, b, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch finalizers of DatabaseBackup %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// reconcileDelete handles the backups of a DatabaseBackup that is being deleted. With deletionPolicy Delete a Job
// deletes them. Without a destination, or when the volume claim is gone, there is nothing to delete: the finalizer is
// removed, and an event reports it. A Job that failed stays, and so does the DatabaseBackup, for example while a store
// is out of reach. A user can delete the Job for another try, or set deletionPolicy to Retain to keep the backups.
// Claims are not watched, so it reconciles again from time to time.
func (r *DatabaseBackupReconciler) reconcileDelete(
	ctx context.Context, b *databasesv1.DatabaseBackup,
) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, databasesv1.FilesFinalizer) {
		return ctrl.Result{}, nil
	}
	if b.Spec.DeletionPolicy != databasesv1.DeleteFiles {
		return ctrl.Result{}, r.reconcileFinalizer(ctx, b, false)
	}
	requeueAfter, err := r.deleteFiles(ctx, b)
	if err == nil && requeueAfter == 0 {
		requeueAfter = time.Minute
	}
	return ctrl.Result{RequeueAfter: requeueAfter}, err
}

// deleteFiles does the next step of the deletion. requeueAfter is the delay before the next try.
func (r *DatabaseBackupReconciler) deleteFiles(
	ctx context.Context, b *databasesv1.DatabaseBackup,
) (requeueAfter time.Duration, err error) {
	if err := r.stopRuns(ctx, b); err != nil {
		return 0, err
	}
	missing, err := r.missingVolume(ctx, b)
	if err != nil {
		return 0, err
	}
	if missing != "" {
		log.FromContext(ctx).Info("Left the backups of a deleted DatabaseBackup", "why", missing, "path", b.Spec.BackupPath)
		if err := r.reconcileFinalizer(ctx, b, false); err != nil {
			return 0, err
		}
		r.recordEvent(b, "Delete", explain(databasesv1.ReasonFilesAbandoned, "%s: no backups are deleted", missing))
		return 0, nil
	}
	pod, err := r.runningPod(ctx, b)
	if err != nil {
		return 0, err
	}
	if pod != "" {
		return 0, r.reportDeletion(ctx, b, explain(databasesv1.ReasonDeleting,
			"Pod %s of a run must end before the backups are deleted", pod))
	}
	return r.reconcileDeleteJob(ctx, b)
}

// stopRuns deletes running Jobs, so that nothing more is written to the repository. It reads the Jobs from the API
// server, because a new Job may not be in the cache yet.
func (r *DatabaseBackupReconciler) stopRuns(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	jobs, err := r.listJobs(ctx, r.Live, b, labels(b.Name, componentBackup))
	if err != nil {
		return err
	}
	for i := range jobs {
		if finished(&jobs[i]) == nil && jobs[i].DeletionTimestamp.IsZero() {
			if err := r.deleteJob(ctx, &jobs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// runningPod names a pod of a run that has not ended; it is empty when all pods have ended. The Job of such a pod is
// gone, but the pod may still start and write to the repository again. Pods are also read from the API server.
func (r *DatabaseBackupReconciler) runningPod(ctx context.Context, b *databasesv1.DatabaseBackup) (string, error) {
	list := &corev1.PodList{}
	runs := client.MatchingLabels(labels(b.Name, componentBackup))
	if err := r.Live.List(ctx, list, client.InNamespace(b.Namespace), runs); err != nil {
		return "", fmt.Errorf("list the pods of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return pod.Name, nil
		}
	}
	return "", nil
}

// missingVolume explains why there is no volume with backups; it is empty when there is one, or when the backups are on a
// server. A claim that is being deleted counts as missing: no new pod may use it.
func (r *DatabaseBackupReconciler) missingVolume(ctx context.Context, b *databasesv1.DatabaseBackup) (string, error) {
	if b.Spec.Destination == nil {
		return "spec.destination is missing", nil
	}
	name := claimOf(b)
	if name == "" {
		return "", nil
	}
	claim, err := find(ctx, r.Live, b.Namespace, name, &corev1.PersistentVolumeClaim{})
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		return fmt.Sprintf("PersistentVolumeClaim %s does not exist", name), nil
	case !claim.DeletionTimestamp.IsZero():
		return fmt.Sprintf("PersistentVolumeClaim %s is being deleted", name), nil
	}
	return "", nil
}
