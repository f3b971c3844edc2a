package controller

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/schedule"
)

// statusFor computes the status of a DatabaseBackup from the observed state. It also returns the plan, and the outcome
// of a run whose end the status records, nil for none.
func statusFor(b *databasesv1.DatabaseBackup, o observed) (databasesv1.DatabaseBackupStatus, plan, *outcome) {
	status := *b.Status.DeepCopy()
	set := setter{&status.Conditions, b.Generation, o.now}
	ended, waiting := followJob(b, &status, o, set)
	if timeOf(status.LastScheduleTime).After(o.now.Add(schedule.Tolerance)) {
		status.LastScheduleTime = metaTime(o.now) // a wrong clock wrote it
	}
	dropExpired(b, &status, o)
	p := planFor(b, &status, o)
	if b.Spec.Encryption != nil {
		status.EncryptionSecretName = ""
	} else if len(p.missing) == 0 {
		status.EncryptionSecretName = passwordOf(b).Name
	}
	if waiting {
		p.claim = nil // else the next run would hide how this run ended
		p.requeueAt = earlier(p.requeueAt, o.now.Add(2*time.Second))
	}
	if c := p.claim; c != nil {
		if !c.done {
			status.ActiveJob, status.InProgress = jobName(b.Name, c.slot), false
		}
		if c.scheduled {
			status.LastScheduleTime = metaTime(c.slot)
		}
	}
	if c := condition(status.Conditions, databasesv1.ConditionBackupSucceeded); c.Reason == "" ||
		c.Reason == databasesv1.ReasonNeverRun || c.Reason == databasesv1.ReasonRunning {
		why := explain(databasesv1.ReasonNeverRun, "there was no run yet")
		if status.ActiveJob != "" {
			why = explain(databasesv1.ReasonRunning, "the first run is in progress")
		}
		set.to(databasesv1.ConditionBackupSucceeded, metav1.ConditionUnknown, why)
	}
	if meta.FindStatusCondition(status.Conditions, databasesv1.ConditionRestoreVerified) == nil {
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionUnknown, explain(databasesv1.ReasonNotRestored,
			"no backup was verified by restoring it"))
	}
	target := blockedTarget(b, o)
	if target == nil {
		target = new(explain(databasesv1.ReasonTargetReady, "the StatefulSet has a ready pod, and the Service exists"))
	}
	set.to(databasesv1.ConditionTargetReady, conditionStatus(target.reason == databasesv1.ReasonTargetReady), *target)
	ready, why := readiness(b, &status, o, p)
	rejected := condition(b.Status.Conditions, databasesv1.ConditionReady)
	if ready && pending(&status, o) && (rejected.Reason == databasesv1.ReasonJobRejected ||
		rejected.Reason == databasesv1.ReasonEarlierPodRuns) {
		ready, why = false, explanation{rejected.Reason, rejected.Message} // until the Job is created
	}
	set.to(databasesv1.ConditionReady, conditionStatus(ready), why)
	p.requeueAt = earlier(p.requeueAt, o.checkPodsAt)
	status.NextScheduleTime, status.ObservedGeneration = metaTime(p.next), b.Generation
	return status, p, ended
}

// pending reports whether status names a Job that is not created yet.
func pending(status *databasesv1.DatabaseBackupStatus, o observed) bool {
	return status.ActiveJob != "" && !status.InProgress && o.job(status.ActiveJob) == nil
}

// dropExpired drops a scheduled run that could not begin, when it is too late now or the schedule is suspended. A run
// that is too late did not happen: lastScheduleTime is set back to the slot before it, so it is reported as missed
// until the next slot.
func dropExpired(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed) {
	slot := slotOf(b.Name, status.ActiveJob)
	late := deadline(b) > 0 && o.now.Sub(slot) >= deadline(b)
	if !pending(status, o) || !slot.Equal(timeOf(status.LastScheduleTime)) || !late && !b.Spec.Suspend {
		return
	}
	status.ActiveJob = ""
	if when, err := schedule.Parse(b.Spec.Schedule, b.Spec.TimeZone); late && err == nil {
		status.LastScheduleTime = metaTime(when.Latest(b.CreationTimestamp.Time, slot.Add(-time.Minute)))
	}
}

// followJob updates the status from the active Job. It returns the outcome, nil while the Job runs. It also reports
// whether the Job has ended with an outcome that is not known yet.
func followJob(
	b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed, set setter,
) (ended *outcome, waiting bool) {
	if status.ActiveJob == "" {
		status.InProgress = false // another client may have written true
		return nil, false
	}
	job := o.job(status.ActiveJob)
	switch {
	case job == nil && status.InProgress && o.vanished:
		ended = &outcome{at: o.now, explanation: explain(databasesv1.ReasonJobDeleted,
			"Job %s was deleted before its end was seen", status.ActiveJob)}
	case job == nil:
		return nil, false
	default:
		status.InProgress = true
		status.LastHandledTrigger = cmp.Or(job.Annotations[databasesv1.TriggerAnnotation], status.LastHandledTrigger)
		end, ok := outcomeOf(job, o.pods, o.now)
		if !ok {
			return nil, finished(job) != nil
		}
		ended = &end
		ended.because(podBlocker(job.Name, o, condition(b.Status.Conditions, databasesv1.ConditionReady)))
	}
	recordOutcome(status, ended, set)
	return ended, false
}

// unreadable is the reason of pgbackup that is evidence against a dump. With every other reason the dump could not be
// verified: a scratch server is not the server that was dumped.
const unreadable = "ArchiveUnreadable"

// recordOutcome notes how the active Job ended. lastBackupTime moves only on success.
func recordOutcome(status *databasesv1.DatabaseBackupStatus, end *outcome, set setter) {
	status.LastJob, status.ActiveJob, status.InProgress = status.ActiveJob, "", false
	known := conditionStatus(end.succeeded)
	if end.reason == databasesv1.ReasonResultMissing {
		known = metav1.ConditionUnknown
	}
	set.to(databasesv1.ConditionBackupSucceeded, known, end.explanation)
	if end.succeeded {
		status.LastBackupTime = metaTime(end.at)
	}
	if taken := end.ends[verbBackup]; taken.passed() && taken.result.Backup != nil {
		recordBackup(status, *taken.result.Backup, end, set)
	} else if end.reason == unreadable {
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionFalse, end.explanation)
	}
	if r := end.ends[verbFinish].result; r != nil && r.Succeeded && r.Backups != nil {
		status.Backups = mergeList(status.Backups, r)
	}
}

// recordBackup notes a backup that exists, and how it was verified.
func recordBackup(status *databasesv1.DatabaseBackupStatus, f facts, end *outcome, set setter) {
	verify := end.ends[verbVerify]
	if verify.passed() {
		f.Verified = &verification{databasesv1.VerifyRestore, verify.state.FinishedAt.Time}
	}
	status.Backups = addBackup(status.Backups, &f)
	if f.Verified != nil && f.Verified.Time.After(timeOf(status.LastVerifiedTime)) {
		status.LastVerifiedTime = metaTime(f.Verified.Time)
	}
	verified, why := metav1.ConditionUnknown, explanation{databasesv1.ReasonNotRestored,
		f.Name + " was not verified by restoring it"}
	switch failure := end.notVerified; {
	case verify.passed():
		verified, why = metav1.ConditionTrue, explanation{databasesv1.ReasonRestoreVerified,
			f.Name + " was restored, and passed its verification"}
	case failure != nil && failure.reason == unreadable:
		verified, why = metav1.ConditionFalse, explain(failure.reason, "%s: %s", f.Name, failure.message)
	case failure != nil:
		why = explain(failure.reason, "%s could not be verified: %s", f.Name, failure.message)
	}
	set.to(databasesv1.ConditionRestoreVerified, verified, why)
}

// setter sets conditions of one generation at one time.
type setter struct {
	conditions *[]metav1.Condition
	generation int64
	now        time.Time
}

// messageLimit is the longest message that a condition may have.
const messageLimit = 32768

func (s setter) to(kind string, status metav1.ConditionStatus, why explanation) {
	meta.SetStatusCondition(s.conditions, metav1.Condition{Type: kind, Status: status, Reason: why.reason,
		Message: shorten(why.message, messageLimit), ObservedGeneration: s.generation,
		LastTransitionTime: metav1.Time{Time: s.now}})
}

func conditionStatus(yes bool) metav1.ConditionStatus {
	if yes {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
