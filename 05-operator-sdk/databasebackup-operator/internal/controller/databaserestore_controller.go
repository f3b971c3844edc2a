package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// +kubebuilder:rbac:groups=databases.test.io,resources=databaserestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=databases.test.io,resources=databaserestores/status,verbs=update

// RestoreKind is the kind that this controller reconciles.
var RestoreKind = databasesv1.GroupVersion.WithKind("DatabaseRestore")

// DatabaseRestoreReconciler restores the backup of each DatabaseRestore, once.
type DatabaseRestoreReconciler struct {
	Base
}

// Reconcile handles one DatabaseRestore. As with backups, the status names the Job before the Job is created. A restore
// that has ended never begins again, even if its Job is deleted.
func (r *DatabaseRestoreReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	restore := &databasesv1.DatabaseRestore{}
	if err := r.Get(ctx, req.NamespacedName, restore); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !restore.DeletionTimestamp.IsZero() || ended(restore) {
		return ctrl.Result{}, nil
	}
	backup, err := r.source(ctx, restore)
	if err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, restore, backup)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, requeueAfter := restoreStatus(restore, backup, o)
	if err := r.updateStatus(ctx, restore, status); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // not found: it was deleted
	}
	if status.JobName != "" && !status.InProgress && o.job(status.JobName) == nil && !ended(restore) {
		requeueAfter, err = r.createRestoreJob(ctx, restore, backup)
	}
	return ctrl.Result{RequeueAfter: requeueAfter}, err
}

// source returns the DatabaseBackup from whose repository a restore reads, nil when it does not exist. When the restore
// names a repository, the source has only that repository.
func (r *DatabaseRestoreReconciler) source(
	ctx context.Context, restore *databasesv1.DatabaseRestore,
) (*databasesv1.DatabaseBackup, error) {
	repository := restore.Spec.Repository
	if repository == nil {
		return find(ctx, r.Client, restore.Namespace, restore.Spec.DatabaseBackupName, &databasesv1.DatabaseBackup{})
	}
	return &databasesv1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: restore.Namespace},
		Spec: databasesv1.DatabaseBackupSpec{Destination: &repository.Destination, BackupPath: repository.BackupPath,
			Encryption: &repository.Encryption},
	}, nil
}

// ended reports whether a restore has succeeded or failed, which is final.
func ended(restore *databasesv1.DatabaseRestore) bool {
	c := condition(restore.Status.Conditions, databasesv1.ConditionSucceeded).Status
	return c == metav1.ConditionTrue || c == metav1.ConditionFalse
}

// observe reads the target, the Job of a restore, and the pods of the Job.
func (r *DatabaseRestoreReconciler) observe(
	ctx context.Context, restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup,
) (o observed, err error) {
	o = observed{now: r.Clock.Now(), image: r.Image}
	target := targetOfRestore(restore, backup)
	if backup != nil {
		o.notAllowed = r.refusalOf(backup, target)
	}
	if err := r.observeTarget(ctx, restore.Namespace, target, &o); err != nil {
		return o, err
	}
	return o, r.observeJobs(ctx, restore, componentRestore, restore.Status.JobName, &o)
}

// createRestoreJob creates the Job. requeueAfter is the delay before the next try, 0 when the Job exists.
func (r *DatabaseRestoreReconciler) createRestoreJob(
	ctx context.Context, restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup,
) (requeueAfter time.Duration, err error) {
	if err := r.checkCurrent(ctx, restore); errors.Is(err, errStale) {
		return retryStale, nil
	} else if err != nil {
		return 0, err
	}
	err = r.createJob(ctx, desiredRestore(restore, backup, r.Image))
	if errors.Is(err, errNamespaceTerminating) {
		return 0, nil
	}
	if refused, ok := errors.AsType[conditionError](err); ok {
		status := *restore.Status.DeepCopy()
		set := setter{&status.Conditions, restore.Generation, r.Clock.Now()}
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, refused.explanation)
		return retryRefused, r.updateStatus(ctx, restore, status)
	}
	return 0, err
}

// updateStatus writes the status if it differs from the status that was read, and records the transition.
func (r *DatabaseRestoreReconciler) updateStatus(
	ctx context.Context, restore *databasesv1.DatabaseRestore, status databasesv1.DatabaseRestoreStatus,
) error {
	old := restore.Status
	if equality.Semantic.DeepEqual(old, status) {
		return nil
	}
	restore.Status = status
	if err := r.Status().Update(ctx, restore, fieldOwner); err != nil {
		return fmt.Errorf("update status of DatabaseRestore %s: %w", client.ObjectKeyFromObject(restore), err)
	}
	logger := log.FromContext(ctx)
	if status.InProgress && !old.InProgress {
		logger.Info("Restore started", "job", status.JobName)
		r.recordEvent(restore, "Restore", explain(databasesv1.ReasonStarted, "Job %s was created", status.JobName))
	}
	is := condition(status.Conditions, databasesv1.ConditionSucceeded)
	if ended(restore) {
		logger.Info("Restore ended", "job", status.JobName, "succeeded", is.Status == metav1.ConditionTrue, "reason",
			is.Reason, "message", is.Message)
	}
	r.recordTransition(restore, "Restore", condition(old.Conditions, databasesv1.ConditionSucceeded), is)
	return nil
}

// SetupWithManager adds the reconciler to a manager. Changes of a restore, its Jobs and its pods enqueue it, and so do
// changes of the DatabaseBackup and the target for which it may wait.
func (r *DatabaseRestoreReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	waiting := handler.EnqueueRequestsFromMapFunc(r.mapToWaitingRestores)
	return ctrl.NewControllerManagedBy(mgr).
		Named("databaserestore").
		For(&databasesv1.DatabaseRestore{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(mapPodToOwner(componentRestore))).
		Watches(&databasesv1.DatabaseBackup{}, waiting, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&appsv1.StatefulSet{}, waiting, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Service{}, waiting).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: backoff(),
			ReconciliationTimeout: timeout}).
		Complete(r)
}
