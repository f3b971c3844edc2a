// Package controller turns DatabaseBackups and DatabaseRestores into Jobs that run pgbackup.
//
// This file says what the operator may do, what wakes the loop of DatabaseBackups, and the loop itself: observe,
// decide, tell, act. What is decided is in decide.go and status.go, how a Job ended in outcome.go and result.go, what
// a Job is in desired.go: all of it pure functions. act.go writes Jobs, deletion.go follows deletionPolicy.
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// What the operator may do: exactly the verbs that it uses. controller-gen makes config/rbac/role.yaml of it.
// There is nothing about Secrets: the kubelet gives credentials to the Jobs' pods, and says when one is missing.
// Jobs, claims and what the operator serves are read one by one, past the cache, where a cache that is behind would
// do harm.
//
// +kubebuilder:rbac:groups=databases.test.io,resources=databasebackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=databases.test.io,resources=databasebackups/status,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services;pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// BackupKind is what this controller serves.
var BackupKind = databasesv1.GroupVersion.WithKind("DatabaseBackup")

// fieldOwner is the operator's name in managed fields.
const fieldOwner = client.FieldOwner(manager)

// longest is how long the loop sleeps at most. A timer does not see that the clock was put forward.
const longest = 10 * time.Minute

// timeout is how long one reconcile may take.
const timeout = 30 * time.Second

// A Writer has what both controllers need.
type Writer struct {
	// Client reads from the manager's cache, Live from the API server.
	client.Client
	Live client.Reader
	// Events receives what changed.
	Events events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Image is for DatabaseBackups that name none; it may be empty.
	Image string
}

// DatabaseBackupReconciler takes the backups of all DatabaseBackups.
type DatabaseBackupReconciler struct {
	Writer
	Metrics *Metrics
}

// Reconcile does what one DatabaseBackup is to do now. Status is written before a Job is made: whoever wrote it
// makes the Job that it names, and nobody else, at whatever point the program ends.
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
		return r.remove(ctx, b)
	}
	if err := r.hold(ctx, b); err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, p, ended := statusFor(b, o)
	if err := r.tell(ctx, b, status, ended); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // it was deleted meanwhile
	}
	if err := r.act(ctx, b, o); errors.Is(err, errBehind) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pause(p.again, o.now)}, nil
}

// pause is how long to sleep until a time; a moment longer, so that the clock has reached it.
func pause(until, now time.Time) time.Duration {
	if until.IsZero() {
		return longest
	}
	return min(max(until.Sub(now), 0)+10*time.Millisecond, longest)
}

// observe reads what there is.
func (r *DatabaseBackupReconciler) observe(ctx context.Context, b *databasesv1.DatabaseBackup) (o observed, err error) {
	o = observed{now: r.Clock.Now(), image: r.Image}
	if o.jobs, err = r.jobs(ctx, b, labels(b.Name, componentBackup)); err != nil {
		return o, err
	}
	if name := b.Status.ActiveJob; name != "" && o.job(name) == nil {
		job, err := r.job(ctx, b.Namespace, name)
		if err != nil {
			return o, err
		}
		if o.vanished = job == nil || !metav1.IsControlledBy(job, b); !o.vanished {
			o.jobs = append(o.jobs, *job)
		}
	}
	if job := o.job(b.Status.ActiveJob); job != nil {
		if o.pods, err = r.pods(ctx, job); err != nil {
			return o, err
		}
	}
	if ref := b.Spec.TargetRef; ref != nil {
		if o.set, err = find(ctx, r.Client, b.Namespace, ref.Name, &appsv1.StatefulSet{}); err != nil {
			return o, err
		}
		o.service, err = find(ctx, r.Client, b.Namespace, serviceOf(ref), &corev1.Service{})
	}
	return o, err
}

// tell writes a status that differs from the one that was read, and then records what changed by it. It names
// the version that it read: when another replica wrote meanwhile, the API server refuses.
func (r *DatabaseBackupReconciler) tell(ctx context.Context, b *databasesv1.DatabaseBackup, status databasesv1.DatabaseBackupStatus, ended *outcome) error {
	key, old := client.ObjectKeyFromObject(b), b.Status
	if !equality.Semantic.DeepEqual(old, status) {
		b.Status = status
		err := r.Status().Update(ctx, b, fieldOwner)
		if err != nil {
			return fmt.Errorf("update status of DatabaseBackup %s: %w", key, err)
		}
		for _, e := range backupEvents(old, status, ended) {
			r.Events.Eventf(b, nil, e.kind, e.reason, "Backup", "%s", e.message)
		}
		if began(old, status) || ended != nil && !old.InProgress { // it may end before it was seen to work
			r.Metrics.started(key)
		}
		if ended != nil {
			r.Metrics.ended(key, ended)
		}
	}
	r.Metrics.told(key, status)
	return nil
}

// A notice is an event, told to whoever asks kubectl describe.
type notice struct {
	obstacle
	kind string
}

// began reports whether a Job is seen that was not before. That it was made is not told where it is made: the answer
// may be lost, and the Job there.
func began(old, now databasesv1.DatabaseBackupStatus) bool {
	return now.InProgress && (!old.InProgress || old.ActiveJob != now.ActiveJob)
}

// backupEvents returns what is worth an event when status becomes another one: transitions, never states.
func backupEvents(old, now databasesv1.DatabaseBackupStatus, ended *outcome) (all []notice) {
	kind := func(normal bool) string {
		if normal {
			return corev1.EventTypeNormal
		}
		return corev1.EventTypeWarning
	}
	if began(old, now) {
		all = append(all, notice{obstacle{databasesv1.ReasonStarted, fmt.Sprintf("Job %s was made", now.ActiveJob)}, corev1.EventTypeNormal})
	}
	if ended != nil {
		all = append(all, notice{ended.obstacle, kind(ended.succeeded)})
	}
	was, is := condition(old.Conditions, databasesv1.ConditionReady), condition(now.Conditions, databasesv1.ConditionReady)
	if was.Status != is.Status || was.Reason != is.Reason {
		calm := is.Reason == databasesv1.ReasonScheduled || is.Reason == databasesv1.ReasonSuspended
		all = append(all, notice{obstacle{is.Reason, is.Message}, kind(calm)})
	}
	return all
}

// condition returns the condition of a type, the zero value when there is none.
func condition(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// SetupWithManager adds the reconciler to a manager.
//
// For: a spec, a trigger or a deletion wakes it; the status that it writes does not. Owns: its Jobs. Watches: pods of
// its Jobs, which tell how they ended or why they do not begin, and the StatefulSets and Services of targets. The
// clock wakes it through RequeueAfter.
func (r *DatabaseBackupReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	for field, name := range map[string]func(*databasesv1.TargetReference) string{
		bySet:     func(ref *databasesv1.TargetReference) string { return ref.Name },
		byService: serviceOf,
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &databasesv1.DatabaseBackup{}, field, targets(name)); err != nil {
			return fmt.Errorf("index DatabaseBackups by %s: %w", field, err)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("databasebackup").
		For(&databasesv1.DatabaseBackup{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, triggered))).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOfPod(componentBackup, componentDelete))).
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(r.whoTargets(bySet))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.whoTargets(byService))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout}).
		Complete(r)
}
