package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// These faults belong to no single rule: wrong clocks, stale caches, names that are used again, pods that vanish.

func asks(value string) func(*backup) {
	return func(x *backup) { x.Annotations = map[string]string{databasesv1.TriggerAnnotation: value} }
}

// earlier creates a Job of a deleted DatabaseBackup of the same name: the garbage collector is about to delete it.
func (b *fixture) earlier(job *batchv1.Job) *batchv1.Job {
	b.t.Helper()
	job.OwnerReferences[0].UID = "of-an-earlier-one"
	b.must(b.Create(b.t.Context(), job))
	return job
}

func TestRecreatedUnderTheSameNameInTheSameMinute(t *testing.T) {
	b := newFixture(t, func(x *backup) { x.Spec.Immediate, x.Spec.Schedule = true, "@yearly" })
	old := b.earlier(desiredBackup(b.backup(), jobName(orders, b.at(0, 5).Truncate(time.Minute)), ""))
	for range 2 {
		_, _ = b.operator.Reconcile(t.Context(), b.request())
	}
	b.is("BackupSucceeded: Unknown Running")
	if _, err := b.operator.Reconcile(t.Context(), b.request()); err == nil {
		t.Error("no retry is asked for")
	}
	if after := b.job(old.Name); after.ResourceVersion != old.ResourceVersion {
		t.Error("the collector's work was done for it")
	}
	b.must(b.Delete(t.Context(), old, client.PropagationPolicy("Background")))
	b.reconcile()
	b.completes()
	b.is("BackupSucceeded: True BackupSucceeded")
}

// A Job of another owner has the name of the Job that deletes the backups. No watch enqueues the DatabaseBackup when that
// Job is deleted.
func TestADeletionWaitsForANameThatIsTaken(t *testing.T) {
	b := newFixture(t, deleteFiles)
	b.reconcile()
	unmanaged := desiredDelete(b.backup(), "")
	unmanaged.OwnerReferences = nil
	b.must(b.Create(t.Context(), unmanaged))
	b.must(b.Delete(t.Context(), b.backup()))
	for range 2 {
		b.retriesSoon(b.operator.Reconcile(t.Context(), b.request()))
		b.is("Ready: False JobNameTaken")
	}
	b.must(b.Delete(t.Context(), unmanaged, client.PropagationPolicy("Background")))
	b.reconcile()
	b.is("Ready: False Deleting")
}

// A claim may be deleted while its backups are deleted, and the operator does not watch claims.
func TestADeletionIsReconciledFromTimeToTime(t *testing.T) {
	b := newFixture(t, deleteFiles)
	b.reconcile()
	b.must(b.Delete(t.Context(), b.backup()))
	if requeueAfter := b.reconcile(); requeueAfter <= 0 || requeueAfter > time.Minute {
		t.Errorf("again in %s", requeueAfter)
	}
}

// The cache may get the Job of a run late: the operator reads this Job by its name.
func TestARunWhoseJobIsNotInTheCache(t *testing.T) {
	b := newFixture(t)
	b.noJobs = true
	b.at(0, 0)
	b.reconcile()
	if s := b.backup().Status; !s.InProgress || len(b.jobs()) != 1 {
		t.Errorf("Jobs %v, %+v", b.jobs(), s)
	}
	b.completes()
	b.is("BackupSucceeded: True BackupSucceeded")
}

// A cache is stale after a restart, or in a replica that has lost its lease. It shows the state before a run was
// claimed, or before its Job was created, but the operator sees the current Jobs.
func TestAStaleCacheDoesNoHarm(t *testing.T) {
	b := newFixture(t, func(x *backup) {
		x.Spec.Schedule, x.Spec.SuccessfulJobsHistoryLimit = "@yearly", new(int32(0))
	})
	b.reconcile()
	before := b.backup()
	b.edit(asks("a"))
	b.at(0, 5)
	if _, err := b.operator.Reconcile(t.Context(), b.request()); err != nil {
		t.Fatal(err)
	}
	claimed := b.backup()
	claimed.Status.InProgress = false // the state before the operator saw the Job
	job := b.job(claimed.Status.ActiveJob)
	b.behind(before)
	if got := b.jobs(); len(got) != 1 {
		t.Fatalf("the Job that works was ended: %v", got)
	}
	b.reconcile()
	b.completes()
	b.behind(claimed)
	if got := b.jobs(); len(got) > 0 {
		t.Errorf("%s ran a second time", job.Name)
	}
}

// behind lets an operator act on an old state.
func (b *fixture) behind(old *backup) {
	b.t.Helper()
	o, err := b.operator.observe(b.t.Context(), old)
	b.must(err)
	if requeueAfter, err := b.operator.reconcileJobs(b.t.Context(), old, o); err != nil || requeueAfter != retryStale {
		b.t.Errorf("it reconciles again in %s, %v", requeueAfter, err)
	}
}

func TestAStaleCacheDoesNotRepeatARestore(t *testing.T) {
	b := newFixture(t)
	b.ask()
	_, err := b.restorer.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key()})
	b.must(err)
	old := b.restore()
	b.follow()
	job := b.job("monday-restore")
	b.run(job,
		b.ended(0, "Completed", &result{Verb: "restore", Succeeded: true, Reason: "RestoreSucceeded", Message: "done"}))
	b.finish(job, "")
	b.follow()
	b.must(b.Delete(t.Context(), job, client.PropagationPolicy("Background")))
	old.Status.InProgress = false
	if requeueAfter, err := b.restorer.createRestoreJob(t.Context(), old, b.backup()); err != nil ||
		requeueAfter != retryStale {
		t.Errorf("it reconciles again in %s, %v", requeueAfter, err)
	}
	err = b.Get(t.Context(), client.ObjectKeyFromObject(job), job)
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Error("it was begun a second time:", err)
	}
}

// When a Job exceeds its deadline, the Job controller deletes its pods first, and reports its end some time later.
func (b *fixture) losePods() {
	b.t.Helper()
	b.must(b.DeleteAllOf(b.t.Context(), &corev1.Pod{}, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)))
}

// A pod that no node takes has this status.
var unschedulable = corev1.PodStatus{Phase: corev1.PodPending,
	Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no volume"}}}

func TestWhyAPodDidNotBeginOutlivesThePod(t *testing.T) {
	exceeds := func(b *fixture, job *batchv1.Job, reconcile func()) { // no node takes its pod before the deadline
		b.run(job, unschedulable)
		reconcile()
		b.losePods()
		reconcile()
		b.finish(job, batchv1.JobReasonDeadlineExceeded)
		reconcile()
	}
	t.Run("a new pod", func(t *testing.T) {
		b, job := newRun(t)
		b.run(job, unschedulable)
		b.reconcile()
		b.losePods()
		b.run(job, corev1.PodStatus{Phase: corev1.PodRunning})
		b.reconcile()
		b.is("Ready: True Scheduled")
	})
	t.Run("a restore", func(t *testing.T) {
		b := newFixture(t)
		b.ask()
		b.follow()
		exceeds(b, b.job("monday-restore"), b.follow)
		if got := b.outcome(); !strings.HasPrefix(got, "False DeadlineExceeded") || !strings.Contains(got, "no volume") {
			t.Error(got)
		}
	})
	t.Run("a deletion", func(t *testing.T) {
		b := newDeletion(t)
		exceeds(b, b.job("orders-delete"), func() { b.reconcile() })
		b.is("Ready: False DeleteFailed")
		b.mentions("Ready", "no volume")
	})
}

// quota prevents every client from creating a Job.
func (b *fixture) quota() *corev1.ResourceQuota {
	b.t.Helper()
	return b.none("none", "count/jobs.batch")
}

// retriesSoon checks that a reconcile requests the next reconcile at most 30 s later.
func (b *fixture) retriesSoon(result ctrl.Result, err error) {
	b.t.Helper()
	if requeueAfter := result.RequeueAfter; err != nil || requeueAfter <= 0 || requeueAfter > lastRetry {
		b.t.Errorf("it tries again in %s, %v", requeueAfter, err)
	}
}

// refused lets the operator run while the API server accepts no Job.
func (b *fixture) refused() {
	for range 2 {
		_, _ = b.operator.Reconcile(b.t.Context(), b.request())
	}
	b.is("Ready: False JobRejected")
}

// A run that the API server did not accept in time is reported as missed, until the next slot.
func TestARunThatWasRefusedTooLongIsMissed(t *testing.T) {
	b := newFixture(t, func(x *backup) { x.Spec.StartingDeadlineSeconds = new(int64(60)) })
	b.runAt(0, 0)
	quota := b.quota()
	b.at(5, 0)
	b.refused()
	b.recorded()
	b.at(6, 0)
	b.lift(quota)
	b.reconcile()
	b.is("Ready: True RunMissed")
	if recorded := strings.Join(b.recorded(), "\n"); !strings.HasPrefix(recorded, "Warning RunMissed") {
		t.Errorf("recorded: %s", recorded)
	}
	b.at(8, 0)
	b.reconcile()
	b.is("Ready: True RunMissed")
	if last := b.backup().Status.LastScheduleTime; last == nil || !last.Time.Equal(b.first()) {
		t.Errorf("the slot that was handled last: %v", last)
	}
	b.at(10, 0)
	b.reconcile()
	b.is("Ready: True Scheduled")
	if got := b.jobs(); !slices.Equal(got, []int{0, 10}) {
		t.Error(got)
	}
}

// A trigger in the same minute as such a run still runs; a trigger that ran before does not run again.
func TestATriggerOutlivesARunThatWasRefused(t *testing.T) {
	late := func(x *backup) { x.Spec.StartingDeadlineSeconds = new(int64(60)) }
	t.Run("together with the run", func(t *testing.T) {
		b := newFixture(t, late, asks("a"))
		quota := b.quota()
		b.at(0, 0)
		b.refused()
		if got := b.backup().Status.LastHandledTrigger; got != "" {
			t.Errorf("%q is handled, and no Job is made", got)
		}
		b.at(1, 0)
		b.lift(quota)
		b.reconcile()
		if got := b.jobs(); !slices.Equal(got, []int{1}) || b.backup().Status.LastHandledTrigger != "a" {
			t.Errorf("Jobs %v, %+v", got, b.backup().Status)
		}
	})
	t.Run("before it", func(t *testing.T) {
		b := newFixture(t, late, asks("a"))
		b.runAt(0, 0)
		quota := b.quota()
		b.at(5, 0)
		b.refused()
		b.at(6, 0)
		b.lift(quota)
		b.reconcile()
		if got := b.jobs(); !slices.Equal(got, []int{0}) {
			t.Error("it ran again:", got)
		}
	})
}

// A clock that was days ahead for a moment has left a slot in the future. The schedule continues by the present clock.
func TestAClockThatWasDaysAheadForAMoment(t *testing.T) {
	b := newFixture(t)
	b.runAt(3*24*60, 0)
	for _, minute := range []int{0, 2, 5, 7, 10, 12} {
		b.at(minute, 30)
		b.reconcile()
		if s := b.backup().Status; s.InProgress {
			b.completes()
		}
	}
	if got := b.jobs(); !slices.Equal(got, []int{5, 10, 3 * 24 * 60}) {
		t.Errorf("Jobs of minutes %v", got)
	}
}

// When a user suspends the schedule, a run that was about to begin, and whose Job the API server refuses, ends.
func TestSuspendGivesUpWhatCannotBegin(t *testing.T) {
	b := newFixture(t)
	quota := b.quota()
	b.at(0, 0)
	for range 2 {
		_, _ = b.operator.Reconcile(t.Context(), b.request())
	}
	b.is("Ready: False JobRejected")
	b.edit(func(x *backup) { x.Spec.Suspend = true })
	b.lift(quota)
	b.reconcile()
	b.is("Ready: False Suspended")
	if s := b.backup().Status; s.ActiveJob != "" || len(b.jobs()) > 0 {
		t.Errorf("it runs: %v, %+v", b.jobs(), s)
	}
	b.at(5, 0)
	b.edit(func(x *backup) { x.Spec.Suspend = false })
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{5}) {
		t.Error("and goes on:", got)
	}
}

func TestTheClockIsPutBack(t *testing.T) {
	b := newFixture(t)
	for _, minute := range []int{0, 5, 10} {
		b.runAt(minute, 0)
	}
	b.recorded()
	for _, minute := range []int{0, 2, 5, 7} { // one hour is repeated
		b.at(minute, 30)
		b.reconcile()
	}
	if got := b.jobs(); !slices.Equal(got, []int{0, 5, 10}) || len(b.recorded()) > 0 {
		t.Errorf("a slot ran again: %v", got)
	}
	b.edit(asks("a"))
	b.at(5, 40)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0, 5, 10}) {
		t.Errorf("a minute that had its run ran again: %v", got)
	}
	b.at(6, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0, 5, 6, 10}) {
		t.Errorf("a run by hand waits for a clock that was put back: %v", got)
	}
	b.completes()
	b.at(15, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{5, 6, 10, 15}) && !slices.Contains(got, 15) {
		t.Errorf("the schedule does not go on: %v", got)
	}
}

// A slot counts as done if its minute had a run by hand before the schedule was changed.
func TestAMinuteThatRanIsReportedOnce(t *testing.T) {
	b := newFixture(t, func(x *backup) { x.Spec.Schedule = "@yearly" }, asks("a"))
	b.runAt(0, 5)
	b.recorded()
	b.edit(func(x *backup) { x.Spec.Schedule = "*/5 * * * *" })
	b.reconcile()
	if recorded := strings.Join(b.recorded(), "\n"); strings.Contains(recorded, "BackupSucceeded") {
		t.Error("recorded twice:", recorded)
	}
	if s := b.backup().Status; s.LastScheduleTime == nil || !s.LastScheduleTime.Time.Equal(b.first()) {
		t.Errorf("the slot is not handled: %+v", s)
	}
	b.at(5, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0, 5}) {
		t.Error(got)
	}
}

func TestARejectedJobIsReportedAndCreatedLater(t *testing.T) {
	b := newFixture(t)
	quota := b.quota()
	b.at(0, 0)
	for range 3 {
		b.retriesSoon(b.operator.Reconcile(t.Context(), b.request()))
	}
	b.is("Ready: False JobRejected")
	b.mentions("Ready", "exceeded quota: none, requested: count/jobs.batch=1, used: count/jobs.batch=0, "+
		"limited: count/jobs.batch=0")
	if recorded := strings.Count(strings.Join(b.recorded(), "\n"), "JobRejected"); recorded != 1 {
		t.Errorf("recorded %d times", recorded)
	}
	b.lift(quota)
	b.reconcile()
	b.is("Ready: True Scheduled", "BackupSucceeded: Unknown Running")
	if got := b.jobs(); !slices.Equal(got, []int{0}) {
		t.Error(got)
	}
}

// A slot is due at the moment when a Job has ended, but the operator has not seen its pod, which reports the result.
func TestReplaceDoesNotForgetWhatHasJustEnded(t *testing.T) {
	b, job := newRun(t, func(x *backup) { x.Spec.ConcurrencyPolicy = databasesv1.ReplaceConcurrent })
	b.at(5, 0)
	b.finish(job, "")
	b.reconcile()
	b.run(job, b.ended(0, "Completed", b.taken(job.Name)...))
	b.reconcile()
	b.is("BackupSucceeded: True BackupSucceeded")
	if s := b.backup().Status; len(s.Backups) != 1 || s.LastBackupTime == nil ||
		s.ActiveJob != jobName(orders, b.first().Add(5*time.Minute)) {
		t.Errorf("status: %+v", s)
	}
}

// A message about the pod of one Job is not reported for the next Job, whose pod does not exist yet.
func TestABlockedPodIsThatOfItsOwnJob(t *testing.T) {
	b := newFixture(t, deleteFiles, func(x *backup) { x.Spec.ConcurrencyPolicy = databasesv1.ReplaceConcurrent })
	b.at(0, 0)
	b.reconcile()
	b.run(b.job(b.backup().Status.ActiveJob), unschedulable)
	b.reconcile()
	b.is("Ready: False Unschedulable")
	b.losePods()
	b.at(5, 0)
	b.reconcile()
	b.is("Ready: True Scheduled")
	b.run(b.job(b.backup().Status.ActiveJob), unschedulable)
	b.reconcile()
	b.removed()
	b.is("Ready: False Deleting")
}
