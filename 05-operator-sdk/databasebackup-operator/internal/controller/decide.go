package controller

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/schedule"
)

// observed is the state on which a decision depends, in addition to the object itself.
type observed struct {
	now time.Time
	// image is the operator's default image.
	image string
	// notAllowed is why the operator's options do not allow the image or the target.
	notAllowed *explanation
	// jobs are the Jobs for this kind of run that the object controls.
	jobs []batchv1.Job
	// pods are the pods of the active Job.
	pods []corev1.Pod
	// refused is why the Job controller cannot create a pod of the active Job; checkPodsAt is when to check that, zero for
	// never.
	refused     *explanation
	checkPodsAt time.Time
	// vanished: the active Job existed, and the API server itself no longer has it.
	vanished bool
	// set and service are the target, nil when it does not exist.
	set     *appsv1.StatefulSet
	service *corev1.Service
}

func (o observed) job(name string) *batchv1.Job {
	for i := range o.jobs {
		if o.jobs[i].Name == name {
			return &o.jobs[i]
		}
	}
	return nil
}

// A plan says what to do for a DatabaseBackup.
type plan struct {
	// missing are the fields without which nothing runs; invalid explains why the schedule is invalid.
	missing []string
	invalid string
	// due is the slot of the schedule that must run, zero for none; missed is a slot that is too late to run.
	due, missed time.Time
	// next is the slot after now, zero for none.
	next time.Time
	// claim is the run that begins now, nil for none.
	claim *claim
	// requeueAt is when to reconcile again although no watch reports a change, zero for never.
	requeueAt time.Time
}

// A claim is a run that status names before its Job is created. Only one process can have written that version of
// status, so only this process creates the Job. After a crash the status still has the name of the Job.
type claim struct {
	slot      time.Time
	scheduled bool
	done      bool // the minute of the slot already had a run, for example by hand
}

// planFor decides what to do, from the status after the end of a run was recorded.
func planFor(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed) plan {
	p := plan{missing: Missing(b, o.image)}
	if when, err := schedule.Parse(b.Spec.Schedule, b.Spec.TimeZone); err != nil {
		p.invalid = err.Error()
	} else if !b.Spec.Suspend && len(p.missing) == 0 {
		last := b.CreationTimestamp.Time
		if status.LastScheduleTime != nil {
			last = status.LastScheduleTime.Time
		}
		slot, err := when.Due(last, o.now, deadline(b))
		if errors.Is(err, schedule.ErrMissed) {
			p.missed = slot
		} else {
			p.due = slot
		}
		p.next = when.Coming(last, o.now)
	}
	p.requeueAt = p.next
	if len(p.missing) == 0 && o.notAllowed == nil && blockedTarget(b, o) == nil {
		p.claim, p.requeueAt = claimFor(b, status, o, p)
	}
	return p
}

func deadline(b *databasesv1.DatabaseBackup) time.Duration {
	return time.Duration(ptr.Deref(b.Spec.StartingDeadlineSeconds, 0)) * time.Second
}

// claimFor decides whether a run begins now. A triggered run and a scheduled run in the same minute are one run: the
// Job names its trigger, which counts as handled when the Job exists.
func claimFor(
	b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed, p plan,
) (*claim, time.Time) {
	if status.InProgress && b.Spec.ConcurrencyPolicy != databasesv1.ReplaceConcurrent {
		return nil, p.requeueAt
	}
	if !p.due.IsZero() && ran(b, status, o, p.due) {
		return &claim{slot: p.due, scheduled: true, done: true}, o.now
	}
	if !p.due.IsZero() {
		return &claim{slot: p.due, scheduled: true}, p.requeueAt
	}
	trigger := b.Annotations[databasesv1.TriggerAnnotation]
	triggered := trigger != "" && trigger != status.LastHandledTrigger
	immediate := b.Spec.Immediate && !b.Spec.Suspend && p.invalid == "" && cmp.Or(status.ActiveJob, status.LastJob) == ""
	if !triggered && !immediate || status.ActiveJob != "" && !status.InProgress {
		return nil, p.requeueAt
	}
	slot := o.now.Truncate(time.Minute)
	if ran(b, status, o, slot) || slot.Equal(timeOf(status.LastScheduleTime)) {
		return nil, earlier(p.requeueAt, slot.Add(time.Minute))
	}
	return &claim{slot: slot}, p.requeueAt
}

// ran reports whether a minute had its run: its Job or its backup exists. This holds even after the clock was put back.
func ran(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed, slot time.Time) bool {
	name := jobName(b.Name, slot)
	return o.job(name) != nil || status.LastJob == name || status.ActiveJob == name ||
		slices.ContainsFunc(status.Backups, func(x databasesv1.Backup) bool { return x.Name == name })
}

// earlier returns the earlier of two times, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// readiness reports whether something prevents the next backup, and why. A cause that a user has to fix comes first.
func readiness(
	b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed, p plan,
) (ready bool, why explanation) {
	if len(p.missing) > 0 {
		return false, explanation{databasesv1.ReasonIncompleteSpec,
			"nothing runs until these are set: " + strings.Join(p.missing, ", ")}
	}
	if p.invalid != "" {
		return false, explanation{databasesv1.ReasonInvalidSchedule, p.invalid}
	}
	if o.notAllowed != nil {
		return false, *o.notAllowed
	}
	if status.InProgress {
		if blocker := podBlocker(status.ActiveJob, o, condition(b.Status.Conditions,
			databasesv1.ConditionReady)); blocker != nil {
			return false, *blocker
		}
	}
	if target := blockedTarget(b, o); target != nil {
		return false, *target
	}
	switch {
	case b.Spec.Suspend:
		return false, explain(databasesv1.ReasonSuspended,
			"spec.suspend is true: the schedule is paused, triggers are followed")
	case !p.missed.IsZero():
		return true, explain(databasesv1.ReasonRunMissed,
			"the run of %s did not start within %s; the next one is at %s", clockTime(p.missed), deadline(b), clockTime(p.next))
	}
	return true, explain(databasesv1.ReasonScheduled, "the schedule is followed, see status.nextScheduleTime")
}

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// surplus are the Jobs to delete: replaced Jobs, and finished Jobs beyond the history limits, the oldest first.
func surplus(b *databasesv1.DatabaseBackup, status *databasesv1.DatabaseBackupStatus, o observed) (all []*batchv1.Job) {
	kept := map[batchv1.JobConditionType]int32{
		batchv1.JobComplete: ptr.Deref(b.Spec.SuccessfulJobsHistoryLimit, 3),
		batchv1.JobFailed:   ptr.Deref(b.Spec.FailedJobsHistoryLimit, 1),
	}
	jobs := slices.Clone(o.jobs)
	slices.SortFunc(jobs, func(x, y batchv1.Job) int {
		return slotOf(b.Name, y.Name).Compare(slotOf(b.Name, x.Name))
	})
	for i := range jobs {
		job, end := &jobs[i], finished(&jobs[i])
		switch {
		case job.Name == status.ActiveJob || !job.DeletionTimestamp.IsZero():
		case end == nil:
			all = append(all, job)
		case kept[end.Type] > 0:
			kept[end.Type]--
		default:
			all = append(all, job)
		}
	}
	return all
}
