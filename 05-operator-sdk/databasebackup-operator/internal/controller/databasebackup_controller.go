// Package controller reconciles DatabaseBackups and DatabaseRestores: it creates Jobs that run pgbackup, and reports
// their results.
//
// This file has the permissions, the watches and Reconcile for DatabaseBackups: observe, decide, update the status,
// create and delete Jobs. The decisions are pure functions: decide.go and status.go for DatabaseBackups, outcome.go and
// result.go for the end of a Job, desired.go for the content of a Job. jobs.go and databasebackup_jobs.go create and
// delete Jobs, deletion.go implements deletionPolicy, metrics.go has the metrics.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// The permissions of the operator: exactly the verbs that it uses. controller-gen generates config/rbac/role.yaml.
// No Secret is read: the kubelet gives credentials to the Jobs' pods. The only Secret that is created has the password of
// a repository: createPassword. Where stale data would do harm, single Jobs, claims and objects of the operator's kinds
// are read from the API server instead of the cache. Events are read where a Job has no pod: podRefusal.
//
// +kubebuilder:rbac:groups=databases.test.io,resources=databasebackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=databases.test.io,resources=databasebackups/status,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// BackupKind is the kind that this controller reconciles.
var BackupKind = databasesv1.GroupVersion.WithKind("DatabaseBackup")

// fieldOwner is the operator's name in managed fields.
const fieldOwner = client.FieldOwner(manager)

const (
	// maxSleep is the longest time between two reconciles. A timer does not notice that the clock was put forward.
	maxSleep = 10 * time.Minute
	// timeout is how long one reconcile may take.
	timeout = 30 * time.Second
	// firstRetry and lastRetry bound the exponential backoff after an error. controller-runtime's default ends at
	// 1,000 s: after an outage a slot of the schedule could be missed.
	firstRetry, lastRetry = 5 * time.Millisecond, 30 * time.Second
	// retryRefused is the delay before a request that the API server refused is tried again: no watch reports that the
	// API server would accept it now.
	retryRefused = 15 * time.Second
	// retryStale is the delay before a decision that was made on a stale cache is made again.
	retryStale = time.Second
)

// backoff is the exponential backoff after errors.
func backoff() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// Base has the fields that both reconcilers need.
type Base struct {
	// Client reads from the manager's cache, Live from the API server.
	client.Client
	Live client.Reader
	// Events records transitions.
	Events events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Allowed limits the choices of users.
	Allowed
}

// DatabaseBackupReconciler takes the backups of all DatabaseBackups.
type DatabaseBackupReconciler struct {
	Base
	Metrics *Metrics
}

// Reconcile brings one DatabaseBackup to its desired state. It writes the name of a Job into the status before it
// creates the Job. Only the process that wrote this status creates the Job, even if a process crashes at any point.
func (r *DatabaseBackupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := &databasesv1.DatabaseBackup{}
	err := r.Get(ctx, req.NamespacedName, b)
	if apierrors.IsNotFound(err) {
		r.Metrics.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("get DatabaseBackup %s: %w", req, err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, b)
	}
	if err := r.reconcileFinalizer(ctx, b, b.Spec.DeletionPolicy == databasesv1.DeleteFiles); err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, p, ended := statusFor(b, o)
	if err := r.updateStatus(ctx, b, status, ended); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // not found: it was deleted
	}
	requeueAfter, err := r.reconcileJobs(ctx, b, o)
	if requeueAfter == 0 {
		requeueAfter = sleep(p.requeueAt, o.now)
	}
	return ctrl.Result{RequeueAfter: requeueAfter}, err
}

// sleep returns how long to wait until a time. It adds a moment, so that the clock has reached the time.
func sleep(until, now time.Time) time.Duration {
	if until.IsZero() {
		return maxSleep
	}
	return min(max(until.Sub(now), 0)+10*time.Millisecond, maxSleep)
}

// observe reads the state from which statusFor decides.
func (r *DatabaseBackupReconciler) observe(ctx context.Context, b *databasesv1.DatabaseBackup) (o observed, err error) {
	o = observed{now: r.Clock.Now(), image: r.Image, notAllowed: r.refusalOf(b, b.Spec.TargetRef)}
	if err := r.observeJobs(ctx, b, componentBackup, b.Status.ActiveJob, &o); err != nil {
		return o, err
	}
	return o, r.observeTarget(ctx, b.Namespace, b.Spec.TargetRef, &o)
}

// SetupWithManager adds the reconciler to a manager.
//
// For: a changed spec, a trigger, a deletion, and a status that another client wrote enqueue a DatabaseBackup. So does
// the status that the operator writes, which costs a read from the cache. Owns: its Jobs. Watches: pods of its Jobs,
// which report how they ended or why they do not start, the StatefulSets and Services of targets, and DatabaseRestores,
// which may find a backup damaged. For the schedule, RequeueAfter enqueues it.
func (r *DatabaseBackupReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	target := handler.EnqueueRequestsFromMapFunc(r.mapToDatabaseBackups)
	return ctrl.NewControllerManagedBy(mgr).
		Named("databasebackup").
		For(&databasesv1.DatabaseBackup{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(mapPodToOwner(componentBackup, componentDelete))).
		Watches(&appsv1.StatefulSet{}, target).
		Watches(&corev1.Service{}, target).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: backoff(),
			ReconciliationTimeout: timeout}).
		Complete(r)
}
