package controller

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/schedule"
)

// statusFor is the status of a DatabaseBackup by what was observed, the plan that it follows, and how the run ended
// that it records, nil for none.
func statusFor(b *databasesv1.DatabaseBackup, o observed) (databasesv1.DatabaseBackupStatus, plan, *outcome) {
	status := *b.Status.DeepCopy()
	set := setter{&status.Conditions, b.Generation, o.now}
	ended, waiting := follow(b, &status, o, set)
	if timeOf(status.LastScheduleTime).After(o.now.Add(schedule.Tolerance)) {
		status.LastScheduleTime = moment(o.now) // a clock that was wrong wrote it
	}
	lapse(b, &status, o)
	p := planFor(b, &status, o)
	if waiting {
		p.claim = nil // else the run after it would hide how it ended
	}
	if c := p.claim; c != nil {
		if !c.done {
			status.ActiveJob, status.InProgress = jobName(b.Name, c.slot), false
		}
		if c.scheduled {
			status.LastScheduleTime = moment(c.slot)
		}
	}
	if waiting {
		p.again = earlier(p.again, o.now.Add(2*time.Second))
	}
	if c := condition(status.Conditions, databasesv1.ConditionBackupSucceeded); c.Reason == "" || c.Reason == databasesv1.ReasonNeverRun || c.Reason == databasesv1.ReasonRunning {
		if status.ActiveJob != "" {
			set.to(databasesv1.ConditionBackupSucceeded, metav1.ConditionUnknown, obstacle{databasesv1.ReasonRunning, "the first run works"})
		} else {
			set.to(databasesv1.ConditionBackupSucceeded, metav1.ConditionUnknown, obstacle{databasesv1.ReasonNeverRun, "there was no run yet"})
		}
	}
	if meta.FindStatusCondition(status.Conditions, databasesv1.ConditionRestoreVerified) == nil {
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionUnknown, obstacle{databasesv1.ReasonNotRestored, "no backup was verified by restoring it"})
	}
	target := targetOf(b, o)
	if target == nil {
		target = &obstacle{databasesv1.ReasonTargetReady, "the StatefulSet has a ready pod, and the Service exists"}
	}
	set.to(databasesv1.ConditionTargetReady, truth(target.reason == databasesv1.ReasonTargetReady), *target)
	ready, what := readiness(b, &status, o, p)
	if rejected := meta.FindStatusCondition(b.Status.Conditions, databasesv1.ConditionReady); ready && pending(&status, o) &&
		rejected != nil && rejected.Reason == databasesv1.ReasonJobRejected {
		ready, what = false, obstacle{rejected.Reason, rejected.Message} // until the API server takes the Job
	}
	set.to(databasesv1.ConditionReady, truth(ready), what)
	status.NextScheduleTime, status.ObservedGeneration = moment(p.next), b.Generation
	return status, p, ended
}

// pending reports whether status names a Job that is not made yet.
func pending(status *databasesv1.DatabaseBackupStatus, o observed) bool {
	return status.ActiveJob != "" && !status.InProgress && o.job(status.ActiveJob) == nil
}

// lapse gives up a run of the schedule that was about to begin, and could not, when it is too late now, or nobody
// wants it any more. One that is too late was not handled after all: lastScheduleTime is the slot before it again, and
// so it is told as missed until the next one comes.
func lapse(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed) {
	slot := slotOf(b.Name, status.ActiveJob)
	late := deadline(b) > 0 && o.now.Sub(slot) >= deadline(b)
	if !pending(status, o) || !slot.Equal(timeOf(status.LastScheduleTime)) || !late && !b.Spec.Suspend {
		return
	}
	status.ActiveJob = ""
	if when, err := schedule.Parse(b.Spec.Schedule, b.Spec.TimeZone); late && err == nil {
		status.LastScheduleTime = moment(when.Latest(b.CreationTimestamp.Time, slot.Add(-time.Minute)))
	}
}

// follow brings status up to date with the active Job. It returns how that ended, nil when it did not, and
// whether its end is known but not yet how.
func follow(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed, set setter) (ended *outcome, waiting bool) {
	if status.ActiveJob == "" {
		return nil, false
	}
	job := o.job(status.ActiveJob)
	switch {
	case job == nil && status.InProgress && o.vanished:
		ended = &outcome{at: o.now, obstacle: obstacle{databasesv1.ReasonJobDeleted, fmt.Sprintf("Job %s was deleted before its end was seen", status.ActiveJob)}}
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
		ended.because(hindrance(job.Name, o.pods, condition(b.Status.Conditions, databasesv1.ConditionReady)))
	}
	record(status, ended, set)
	return ended, false
}

// record notes how the active Job ended. lastBackupTime moves only on success.
func record(status *databasesv1.DatabaseBackupStatus, end *outcome, set setter) {
	status.LastJob, status.ActiveJob, status.InProgress = status.ActiveJob, "", false
	known := truth(end.succeeded)
	if end.reason == databasesv1.ReasonResultMissing {
		known = metav1.ConditionUnknown
	}
	set.to(databasesv1.ConditionBackupSucceeded, known, end.obstacle)
	if end.succeeded {
		status.LastBackupTime = moment(end.at)
	}
	if end.result == nil {
		return
	}
	status.Backups = noted(status.Backups, end.result)
	f := end.result.Backup
	if f == nil {
		return
	}
	if f.Verified != nil && f.Verified.Time.After(timeOf(status.LastVerifiedTime)) {
		status.LastVerifiedTime = moment(f.Verified.Time)
	}
	switch {
	case f.Failure != nil:
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionFalse, obstacle{f.Failure.Reason, fmt.Sprintf("%s: %s", f.Name, f.Failure.Message)})
	case f.Verified != nil && f.Verified.Mode == databasesv1.VerifyRestore:
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionTrue, obstacle{databasesv1.ReasonRestoreVerified, f.Name + " was restored, and is right"})
	default:
		set.to(databasesv1.ConditionRestoreVerified, metav1.ConditionUnknown, obstacle{databasesv1.ReasonNotRestored, f.Name + " was not verified by restoring it"})
	}
}

// setter sets conditions of one generation at one time.
type setter struct {
	conditions *[]metav1.Condition
	generation int64
	now        time.Time
}

// messageLimit is the longest message that a condition may have.
const messageLimit = 32768

func (s setter) to(kind string, status metav1.ConditionStatus, what obstacle) {
	meta.SetStatusCondition(s.conditions, metav1.Condition{Type: kind, Status: status, Reason: what.reason,
		Message: what.message[:min(len(what.message), messageLimit)], ObservedGeneration: s.generation,
		LastTransitionTime: metav1.Time{Time: s.now}})
}

func truth(yes bool) metav1.ConditionStatus {
	if yes {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
