package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// hold puts the finalizer on a DatabaseBackup whose files go with it, before anything is written to the volume, and
// takes it off one whose files stay.
func (r *DatabaseBackupReconciler) hold(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	wanted := b.Spec.DeletionPolicy == databasesv1.DeleteFiles
	if controllerutil.ContainsFinalizer(b, databasesv1.FilesFinalizer) == wanted {
		return nil
	}
	return r.finalize(ctx, b, wanted)
}

// finalize sets or removes the finalizer. The patch names the version that was read: a list is replaced as a whole.
func (r *DatabaseBackupReconciler) finalize(ctx context.Context, b *databasesv1.DatabaseBackup, wanted bool) error {
	before := client.MergeFromWithOptions(b.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if wanted {
		controllerutil.AddFinalizer(b, databasesv1.FilesFinalizer)
	} else {
		controllerutil.RemoveFinalizer(b, databasesv1.FilesFinalizer)
	}
	if err := r.Patch(ctx, b, before, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch finalizers of DatabaseBackup %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// remove sees to the files of a DatabaseBackup that is being deleted. With deletionPolicy Delete a Job removes
// them. When there is no volume claim any more, there is nothing that could be removed: the finalizer is given up,
// and an event says so. A Job that failed stays, and so does the DatabaseBackup: who deletes the Job asks for
// another try, who sets deletionPolicy to Retain gives the files up. It looks again from time to time: nobody watches
// claims.
func (r *DatabaseBackupReconciler) remove(ctx context.Context, b *databasesv1.DatabaseBackup) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, databasesv1.FilesFinalizer) {
		return ctrl.Result{}, nil
	}
	if b.Spec.DeletionPolicy != databasesv1.DeleteFiles {
		return ctrl.Result{}, r.finalize(ctx, b, false)
	}
	if err := r.removeFiles(ctx, b); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

// removeFiles brings the deletion one step further.
func (r *DatabaseBackupReconciler) removeFiles(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	if err := r.stop(ctx, b); err != nil {
		return err
	}
	gone, err := r.volumeGone(ctx, b)
	if err != nil {
		return err
	}
	if gone != "" {
		err := r.finalize(ctx, b, false)
		if err == nil {
			r.Events.Eventf(b, nil, corev1.EventTypeWarning, databasesv1.ReasonFilesAbandoned, "Delete", "%s: no files are deleted", gone)
		}
		return err
	}
	if pod, err := r.working(ctx, b); err != nil {
		return err
	} else if pod != "" {
		return r.deleting(ctx, b, obstacle{databasesv1.ReasonDeleting, fmt.Sprintf("Pod %s of a run must end before the files are deleted", pod)})
	}
	return r.erase(ctx, b)
}

// working names a pod of a run that has not ended, empty when there is none. Its Job is gone, but it may still begin,
// and would make the folder again. Pods are read from the API server itself: one that the cache does not show yet
// would be missed.
func (r *DatabaseBackupReconciler) working(ctx context.Context, b *databasesv1.DatabaseBackup) (string, error) {
	list := &corev1.PodList{}
	if err := r.Live.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingLabels(labels(b.Name, componentBackup))); err != nil {
		return "", fmt.Errorf("list the pods of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return pod.Name, nil
		}
	}
	return "", nil
}

// erase makes the Job that removes the files, and ends the deletion when that has succeeded.
func (r *DatabaseBackupReconciler) erase(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	if b.Spec.Image == "" && r.Image == "" {
		return r.deleting(ctx, b, obstacle{databasesv1.ReasonDeleteFailed, "spec.image is missing: set it, or set spec.deletionPolicy to Retain"})
	}
	wanted := desiredDelete(b, r.Image)
	job, err := r.job(ctx, b.Namespace, wanted.Name)
	if err != nil {
		return err
	}
	if job != nil && metav1.IsControlledBy(job, b) {
		return r.erased(ctx, b, job)
	}
	_, err = r.make(ctx, wanted)
	what, told := errors.AsType[rejection](err)
	switch {
	case errors.Is(err, errGoing): // and the claim with the files goes too
		return r.finalize(ctx, b, false)
	case told:
		return errors.Join(r.deleting(ctx, b, what.obstacle), err) // tried again, ever more slowly
	case err != nil:
		return err
	}
	return r.erased(ctx, b, wanted)
}

// erased follows the Job that removes the files. That the files are gone is what pgbackup says: an image without it
// may succeed and do nothing. Only when the pod is gone, with what it said, the Job is believed.
func (r *DatabaseBackupReconciler) erased(ctx context.Context, b *databasesv1.DatabaseBackup, job *batchv1.Job) error {
	end := finished(job)
	pods, err := r.pods(ctx, job)
	if err != nil {
		return err
	}
	before := condition(b.Status.Conditions, databasesv1.ConditionReady)
	hindered := hindrance(job.Name, pods, before)
	o, ok := outcomeOf(job, pods, r.Clock.Now())
	silent := end != nil && end.Type == batchv1.JobComplete && len(pods) == 0
	said := o.succeeded && o.result.Verb == componentDelete
	switch {
	case said, silent && before.Reason != databasesv1.ReasonDeleteFailed:
		return r.finalize(ctx, b, false)
	case end == nil && hindered != nil:
		return r.deleting(ctx, b, *hindered)
	case end == nil:
		return r.deleting(ctx, b, obstacle{databasesv1.ReasonDeleting, fmt.Sprintf("Job %s deletes the files", job.Name)})
	case before.Reason == databasesv1.ReasonDeleteFailed:
		return nil // it is told, by pods that may be gone since
	case !ok:
		return r.deleting(ctx, b, obstacle{databasesv1.ReasonDeleting, fmt.Sprintf("Job %s has ended, and its pod does not say how yet", job.Name)})
	case o.succeeded:
		o.message = fmt.Sprintf("Job %s did not delete the files, but %s: does the image have pgbackup?", job.Name, o.result.Verb)
	}
	o.because(hindered)
	return r.deleting(ctx, b, obstacle{databasesv1.ReasonDeleteFailed,
		o.message + ": delete Job " + job.Name + " to try again, or set spec.deletionPolicy to Retain"})
}

// stop ends the runs of a DatabaseBackup that is being deleted: nothing new may come onto the volume.
func (r *DatabaseBackupReconciler) stop(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	jobs, err := r.jobs(ctx, b, labels(b.Name, componentBackup))
	if err != nil {
		return err
	}
	for i := range jobs {
		if finished(&jobs[i]) == nil && jobs[i].DeletionTimestamp.IsZero() {
			if err := r.discard(ctx, &jobs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// volumeGone says why there is no volume, empty when there is one. A claim that is being deleted counts as gone: no
// new pod may use it.
func (r *DatabaseBackupReconciler) volumeGone(ctx context.Context, b *databasesv1.DatabaseBackup) (string, error) {
	name := claimOf(b)
	if name == "" {
		return "spec.destination is missing", nil
	}
	claim, err := find(ctx, r.Live, b.Namespace, name, &corev1.PersistentVolumeClaim{})
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		return fmt.Sprintf("PersistentVolumeClaim %s is gone", name), nil
	case !claim.DeletionTimestamp.IsZero():
		return fmt.Sprintf("PersistentVolumeClaim %s is being deleted", name), nil
	}
	return "", nil
}

// deleting tells how the deletion goes.
func (r *DatabaseBackupReconciler) deleting(ctx context.Context, b *databasesv1.DatabaseBackup, what obstacle) error {
	status := *b.Status.DeepCopy()
	status.NextScheduleTime, status.ActiveJob, status.InProgress, status.ObservedGeneration = nil, "", false, b.Generation
	setter{&status.Conditions, b.Generation, r.Clock.Now()}.to(databasesv1.ConditionReady, metav1.ConditionFalse, what)
	err := r.tell(ctx, b, status, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
