package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// +kubebuilder:rbac:groups=databases.test.io,resources=databaserestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=databases.test.io,resources=databaserestores/status,verbs=update

// RestoreKind is what this controller serves.
var RestoreKind = databasesv1.GroupVersion.WithKind("DatabaseRestore")

// DatabaseRestoreReconciler restores what DatabaseRestores name, each once.
type DatabaseRestoreReconciler struct{ Writer }

// Reconcile follows one DatabaseRestore. As with backups, status names the Job before it is made; a restore that has
// ended is never begun again, whatever happens to its Job.
func (r *DatabaseRestoreReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	restore := &databasesv1.DatabaseRestore{}
	if err := r.Get(ctx, req.NamespacedName, restore); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !restore.DeletionTimestamp.IsZero() || ended(restore) {
		return ctrl.Result{}, nil
	}
	backup, err := find(ctx, r.Client, req.Namespace, restore.Spec.DatabaseBackupName, &databasesv1.DatabaseBackup{})
	if err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, restore)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, again := restoreStatus(restore, backup, o)
	if err := r.tell(ctx, restore, status); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // it was deleted meanwhile
	}
	if backup != nil && status.JobName != "" && !status.InProgress && o.job(status.JobName) == nil && !ended(restore) {
		err = r.begin(ctx, restore, backup)
	}
	if errors.Is(err, errBehind) {
		return ctrl.Result{RequeueAfter: 2 * time.Second}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// ended reports whether a restore has succeeded or failed, which is for good.
func ended(restore *databasesv1.DatabaseRestore) bool {
	c := condition(restore.Status.Conditions, databasesv1.ConditionSucceeded).Status
	return c == metav1.ConditionTrue || c == metav1.ConditionFalse
}

// observe reads the Job of a restore, from the API server itself when the cache does not have it, and its pods.
func (r *DatabaseRestoreReconciler) observe(ctx context.Context, restore *databasesv1.DatabaseRestore) (o observed, err error) {
	o = observed{now: r.Clock.Now(), image: r.Image}
	name := restore.Status.JobName
	if name == "" {
		return o, nil
	}
	if o.jobs, err = r.jobs(ctx, restore, labels(restore.Name, componentRestore)); err != nil {
		return o, err
	}
	if o.job(name) == nil {
		job, err := r.job(ctx, restore.Namespace, name)
		if err != nil {
			return o, err
		}
		if o.vanished = job == nil || !metav1.IsControlledBy(job, restore); !o.vanished {
			o.jobs = append(o.jobs, *job)
		}
	}
	if job := o.job(name); job != nil {
		o.pods, err = r.pods(ctx, job)
	}
	return o, err
}

// lacking lists what a restore needs to run and neither it nor its DatabaseBackup says.
func lacking(restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup, image string) []string {
	return slices.DeleteFunc(Missing(backup, image), func(field string) bool {
		return restore.Spec.TargetRef != nil && strings.HasPrefix(field, "spec.targetRef") ||
			restore.Spec.Auth != nil && strings.HasPrefix(field, "spec.auth")
	})
}

// forgotten is how long a restore waits for a DatabaseBackup that does not exist. Who creates one of that name much
// later does not expect a restore to begin.
const forgotten = 10 * time.Minute

// restoreStatus is the status of a restore by what was observed, and when to look again though nothing wakes the loop,
// 0 for never: its Job has ended, and it is not known yet how, or it waits for its DatabaseBackup.
func restoreStatus(restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup, o observed) (status databasesv1.DatabaseRestoreStatus, again time.Duration) {
	status = *restore.Status.DeepCopy()
	status.ObservedGeneration = restore.Generation
	set := setter{&status.Conditions, restore.Generation, o.now}
	unknown := func(reason, format string, args ...any) {
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, obstacle{reason, fmt.Sprintf(format, args...)})
	}
	job := o.job(status.JobName)
	switch {
	case job != nil:
		end, ok := outcomeOf(job, o.pods, o.now)
		hindered := hindrance(job.Name, o.pods, condition(restore.Status.Conditions, databasesv1.ConditionSucceeded))
		if status.InProgress = !ok; ok {
			end.because(hindered)
			finish(&status, &end, set)
			return status, 0
		}
		if status.StartTime == nil {
			status.StartTime = moment(o.now)
		}
		if hindered == nil {
			hindered = &obstacle{databasesv1.ReasonRestoring, fmt.Sprintf("Job %s works", job.Name)}
		}
		unknown(hindered.reason, "%s", hindered.message)
		if finished(job) != nil {
			again = 2 * time.Second
		}
	case status.InProgress && o.vanished:
		finish(&status, &outcome{at: o.now, obstacle: obstacle{databasesv1.ReasonJobDeleted, fmt.Sprintf("Job %s was deleted before its end was seen", status.JobName)}}, set)
	case backup == nil || !backup.DeletionTimestamp.IsZero():
		what := obstacle{databasesv1.ReasonDatabaseBackupNotFound, fmt.Sprintf("DatabaseBackup %s does not exist, or is being deleted", restore.Spec.DatabaseBackupName)}
		status.JobName = ""
		left := restore.CreationTimestamp.Add(forgotten).Sub(o.now)
		if left <= 0 {
			finish(&status, &outcome{at: o.now, obstacle: what}, set)
			return status, 0
		}
		unknown(what.reason, "%s", what.message)
		again = left + 10*time.Millisecond
	case len(lacking(restore, backup, o.image)) > 0:
		unknown(databasesv1.ReasonIncompleteSpec, "DatabaseBackup %s lacks %s", backup.Name, strings.Join(lacking(restore, backup, o.image), ", "))
		status.JobName = ""
	case status.JobName == "" || !refused[condition(status.Conditions, databasesv1.ConditionSucceeded).Reason]:
		status.JobName = restore.Name + "-restore"
		unknown(databasesv1.ReasonRestoring, "Job %s is about to be made", status.JobName)
	}
	return status, again
}

// refused are the reasons that make gives: they stand until the Job is made.
var refused = map[string]bool{databasesv1.ReasonJobRejected: true, databasesv1.ReasonJobNameTaken: true}

// finish notes how a restore ended.
func finish(status *databasesv1.DatabaseRestoreStatus, end *outcome, set setter) {
	status.InProgress, status.CompletionTime = false, moment(end.at)
	set.to(databasesv1.ConditionSucceeded, truth(end.succeeded), end.obstacle)
	if end.result != nil && end.result.Restored != nil {
		made := end.result.Restored
		status.Restored = &databasesv1.Restored{Database: made.Database, Tables: made.Tables, Rows: made.Rows, Replaced: made.Replaced}
	}
}

// begin makes the Job.
func (r *DatabaseRestoreReconciler) begin(ctx context.Context, restore *databasesv1.DatabaseRestore, backup *databasesv1.DatabaseBackup) error {
	if err := r.current(ctx, restore); err != nil {
		return err
	}
	job := desiredRestore(restore, backup, r.Image)
	made, err := r.make(ctx, job)
	if errors.Is(err, errGoing) {
		return nil
	}
	what, told := errors.AsType[rejection](err)
	if told {
		status := *restore.Status.DeepCopy()
		set := setter{&status.Conditions, restore.Generation, r.Clock.Now()}
		set.to(databasesv1.ConditionSucceeded, metav1.ConditionUnknown, what.obstacle)
		return errors.Join(r.tell(ctx, restore, status), err)
	}
	if made {
		r.Events.Eventf(restore, nil, corev1.EventTypeNormal, databasesv1.ReasonStarted, "Restore", "Job %s was made", job.Name)
	}
	return err
}

// tell writes a status that differs from the one that was read, and records the transition.
func (r *DatabaseRestoreReconciler) tell(ctx context.Context, restore *databasesv1.DatabaseRestore, status databasesv1.DatabaseRestoreStatus) error {
	old := restore.Status
	if equality.Semantic.DeepEqual(old, status) {
		return nil
	}
	restore.Status = status
	err := r.Status().Update(ctx, restore, fieldOwner)
	if err != nil {
		return fmt.Errorf("update status of DatabaseRestore %s: %w", client.ObjectKeyFromObject(restore), err)
	}
	was, is := condition(old.Conditions, databasesv1.ConditionSucceeded), condition(status.Conditions, databasesv1.ConditionSucceeded)
	if was.Status != is.Status || was.Reason != is.Reason {
		kind := corev1.EventTypeWarning
		if is.Status == metav1.ConditionTrue || is.Reason == databasesv1.ReasonRestoring {
			kind = corev1.EventTypeNormal
		}
		r.Events.Eventf(restore, nil, kind, is.Reason, "Restore", "%s", is.Message)
	}
	return nil
}

// byBackup is the index of DatabaseRestores by the DatabaseBackup that they name.
const byBackup = "spec.databaseBackupName"

// SetupWithManager adds the reconciler to a manager. Restores are woken by themselves, their Jobs and pods, and the
// DatabaseBackup for which they may wait.
func (r *DatabaseRestoreReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &databasesv1.DatabaseRestore{}, byBackup, func(obj client.Object) []string {
		return []string{obj.(*databasesv1.DatabaseRestore).Spec.DatabaseBackupName}
	})
	if err != nil {
		return fmt.Errorf("index DatabaseRestores by %s: %w", byBackup, err)
	}
	waits := func(ctx context.Context, backup client.Object) (requests []reconcile.Request) {
		list := &databasesv1.DatabaseRestoreList{}
		if err := r.List(ctx, list, client.InNamespace(backup.GetNamespace()), client.MatchingFields{byBackup: backup.GetName()}); err != nil {
			return nil // the cache has stopped
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("databaserestore").
		For(&databasesv1.DatabaseRestore{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOfPod(componentRestore))).
		Watches(&databasesv1.DatabaseBackup{}, handler.EnqueueRequestsFromMapFunc(waits), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout}).
		Complete(r)
}
