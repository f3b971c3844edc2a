package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

type backup = databasesv1.DatabaseBackup

// The whole life of a run: writes, events, and the time of the next reconcile. TestAScrapeHasTheFiguresOfABackup checks
// the metrics.
func TestARun(t *testing.T) {
	b := newFixture(t)
	requeueAfter := b.reconcile()
	if want := b.first().Sub(b.clock.Now()); requeueAfter < want || requeueAfter > want+time.Second {
		t.Errorf("it reconciles again in %s, want %s", requeueAfter, want)
	}
	b.is("Ready: True Scheduled", "TargetReady: True TargetReady", "BackupSucceeded: Unknown NeverRun",
		"RestoreVerified: Unknown NotRestored")
	if len(b.jobs()) > 0 {
		t.Fatal("a Job before its time")
	}
	b.writes = nil
	slot := b.at(0, 1).Truncate(time.Minute)
	b.reconcile()
	name := fmt.Sprintf("orders-%d", slot.Unix()/60)
	if want := []string{"status orders", "create orders-backup-encryption", "create " + name,
		"status orders"}; !slices.Equal(b.writes, want) {
		t.Errorf("a run begins with %v", b.writes)
	}
	if s := b.backup().Status; !s.InProgress || s.ActiveJob != name || !s.LastScheduleTime.Time.Equal(slot) ||
		!s.NextScheduleTime.Time.Equal(slot.Add(5*time.Minute)) {
		t.Errorf("a working run: %+v", s)
	}
	b.is("BackupSucceeded: Unknown Running", "Ready: True Scheduled")
	b.at(1, 0)
	b.writes = nil
	b.completes()
	if want := []string{"status orders"}; !slices.Equal(b.writes, want) {
		t.Errorf("a run ends with %v", b.writes)
	}
	s := b.backup().Status
	if s.InProgress || s.ActiveJob != "" || s.LastJob != name || !s.LastBackupTime.Time.Equal(b.clock.Now()) ||
		s.LastVerifiedTime == nil {
		t.Errorf("a run that ended: %+v", s)
	}
	if len(s.Backups) != 1 || s.Backups[0].Snapshot != "1a2b3c4d" || s.Backups[0].Stored != 815 ||
		s.Backups[0].Verified != databasesv1.VerifyArchive || s.Backups[0].Size != 4711 {
		t.Errorf("backups: %+v", s.Backups)
	}
	b.is("BackupSucceeded: True BackupSucceeded")
	want := []string{"Normal Scheduled the schedule is followed, see status.nextScheduleTime",
		"Normal Started Job " + name + " was created", "Normal BackupSucceeded the backup was taken"}
	if diff := cmp.Diff(want, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
	before := b.backup().ResourceVersion
	b.writes = nil
	b.reconcile()
	if len(b.writes) > 0 || b.backup().ResourceVersion != before {
		t.Error("a second reconcile writes:", b.writes)
	}
}

// The sample of the original operator is accepted, and the condition reports its missing fields.
func TestAnIncompleteSpecNeverRuns(t *testing.T) {
	b := newFixture(t)
	b.must(b.Delete(t.Context(), b.backup()))
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "databases_v1_databasebackup.yaml"))
	b.must(err)
	sample := &backup{}
	b.must(yaml.UnmarshalStrict(data, sample))
	sample.Namespace, sample.Name = b.namespace, orders
	sample.Annotations = map[string]string{databasesv1.TriggerAnnotation: "now"}
	sample.Spec.Immediate = true
	b.must(b.Create(t.Context(), sample))
	b.at(20, 0)
	b.reconcile()
	b.is("Ready: False IncompleteSpec", "BackupSucceeded: Unknown NeverRun")
	message := condition(b.backup().Status.Conditions, "Ready").Message
	if message != "nothing runs until these are set: spec.targetRef, spec.auth.usernameSecretRef, "+
		"spec.auth.passwordSecretRef, spec.image, spec.destination" {
		t.Error(message)
	}
	if s := b.backup().Status; len(b.jobs()) > 0 || s.NextScheduleTime != nil || s.LastHandledTrigger != "" {
		t.Errorf("a pretended run: %+v", s)
	}
	b.edit(func(x *backup) {
		name, path := x.Spec.DatabaseName, x.Spec.BackupPath
		x.Spec = complete("").Spec
		x.Spec.DatabaseName, x.Spec.BackupPath = name, path
	})
	b.reconcile()
	b.is("Ready: True Scheduled")
	if got := b.jobs(); !slices.Equal(got, []int{20}) {
		t.Error("complete, the latest slot runs:", got)
	}
}

// Each case has a due run, or none, and the Jobs that it causes, as minutes after the first slot. A slot comes every
// five minutes.
func TestWhatRuns(t *testing.T) {
	trigger := asks("a")
	for name, test := range map[string]struct {
		spec     func(*backup)
		min, sec int
		want     []int
		ready    string
	}{
		"before the first slot":           {func(*backup) {}, -1, 59, nil, "True Scheduled"},
		"a slot":                          {func(*backup) {}, 0, 0, []int{0}, "True Scheduled"},
		"after downtime, the latest only": {func(*backup) {}, 2000, 30, []int{2000}, "True Scheduled"},
		"suspended":                       {func(x *backup) { x.Spec.Suspend = true }, 7, 0, nil, "False Suspended"},
		"suspended, and immediate": {
			func(x *backup) { x.Spec.Suspend, x.Spec.Immediate = true, true }, 7, 0, nil, "False Suspended"},
		"suspended, and by hand": {func(x *backup) { x.Spec.Suspend = true; trigger(x) }, 7, 9, []int{7}, "False Suspended"},
		"immediate": {
			func(x *backup) { x.Spec.Immediate, x.Spec.Schedule = true, "@yearly" }, 3, 10, []int{3}, "True Scheduled"},
		"immediate on a slot is one run": {func(x *backup) { x.Spec.Immediate = true }, 0, 10, []int{0}, "True Scheduled"},
		"by hand": {
			func(x *backup) { x.Spec.Schedule = "@yearly"; trigger(x) }, 3, 10, []int{3}, "True Scheduled"},
		"by hand on a slot is one run": {trigger, 5, 10, []int{5}, "True Scheduled"},
		"inside the deadline": {
			func(x *backup) { x.Spec.StartingDeadlineSeconds = new(int64(60)) }, 5, 59, []int{5}, "True Scheduled"},
		"outside of it": {func(x *backup) { x.Spec.StartingDeadlineSeconds = new(int64(60)) }, 6, 0, nil,
			"True RunMissed"},
		"a date that never comes": {func(x *backup) { x.Spec.Schedule = "0 0 30 2 *" }, 20, 0, nil, "False InvalidSchedule"},
		"a date that never comes, by hand": {
			func(x *backup) { x.Spec.Schedule = "0 0 30 2 *"; trigger(x) }, 20, 0, []int{20}, "False InvalidSchedule"},
		"immediate, and it never comes": {
			func(x *backup) { x.Spec.Schedule, x.Spec.Immediate = "0 0 30 2 *", true }, 20, 0, nil, "False InvalidSchedule"},
		"a minute that no hour has": {
			func(x *backup) { x.Spec.Schedule = "61 * * * *" }, 20, 0, nil, "False InvalidSchedule"},
		"a zone that does not exist": {
			func(x *backup) { x.Spec.TimeZone = "Europe/Atlantis" }, 20, 0, nil, "False InvalidSchedule"},
		"no StatefulSet": {func(x *backup) { x.Spec.TargetRef.Name = "other" }, 5, 0, nil, "False TargetNotFound"},
		"no Service":     {func(x *backup) { x.Spec.TargetRef.ServiceName = "other" }, 5, 0, nil, "False TargetNotFound"},
		"a Service by the name of the set": {
			func(x *backup) { x.Spec.TargetRef.ServiceName = "" }, 5, 0, nil, "False TargetNotFound"},
		"the zone's own midnight, in a year": {
			func(x *backup) { x.Spec.Schedule, x.Spec.TimeZone = "@yearly", "Asia/Tokyo" }, 5, 0, nil, "True Scheduled"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, test.spec)
			b.at(test.min, test.sec)
			b.reconcile()
			b.reconcile()
			if got := b.jobs(); !slices.Equal(got, test.want) {
				t.Errorf("Jobs of minutes %v, want %v", got, test.want)
			}
			if got := b.says("Ready"); got != test.ready {
				t.Errorf("Ready is %s, want %s", got, test.ready)
			}
		})
	}
}

func TestATargetThatIsNotReadyIsWaitedFor(t *testing.T) {
	b := newFixture(t)
	b.ready(0)
	b.at(0, 0)
	b.reconcile()
	b.is("Ready: False TargetNotReady", "TargetReady: False TargetNotReady")
	b.at(11, 0)
	b.ready(1)
	b.reconcile()
	b.is("Ready: True Scheduled", "TargetReady: True TargetReady")
	if got := b.jobs(); !slices.Equal(got, []int{10}) {
		t.Error("the latest missed slot, once:", got)
	}
}

func TestForbidWaitsAndReplaceReplaces(t *testing.T) {
	for policy, want := range map[databasesv1.ConcurrencyPolicy][]int{
		databasesv1.ForbidConcurrent: {0}, databasesv1.ReplaceConcurrent: {15}} {
		t.Run(string(policy), func(t *testing.T) {
			b := newFixture(t, func(x *backup) { x.Spec.ConcurrencyPolicy = policy })
			for minute := range 16 {
				b.at(minute, 0)
				b.reconcile()
			}
			if got := b.jobs(); !slices.Equal(got, want) {
				t.Fatalf("Jobs of minutes %v, want %v", got, want)
			}
			if replaced := strings.Count(strings.Join(b.recorded(), "\n"),
				"Replaced"); (replaced == 3) != (policy == databasesv1.ReplaceConcurrent) {
				t.Error("replaced:", replaced)
			}
			b.at(17, 0)
			b.completes()
			b.reconcile()
			if got := b.jobs(); !slices.Equal(got, append(slices.Clone(want), 15)[:len(got)]) || !slices.Contains(got, 15) {
				t.Errorf("and after its end: %v", got)
			}
		})
	}
}

// A trigger starts one run, also when it comes in a minute that had its run, or during a run.
func TestATriggerIsFollowedOnce(t *testing.T) {
	b := newFixture(t)
	b.at(0, 5)
	b.reconcile()
	b.edit(asks("while it works"))
	b.reconcile()
	if got := b.backup().Status.LastHandledTrigger; got != "" {
		t.Errorf("%q was handled while a run works", got)
	}
	b.succeed()
	b.at(0, 30)
	requeueAfter := b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0}) || requeueAfter > 31*time.Second {
		t.Errorf("in the same minute: %v, again in %s", got, requeueAfter)
	}
	b.at(1, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0, 1}) || b.backup().Status.LastHandledTrigger != "while it works" {
		t.Errorf("in the next: %v, %+v", got, b.backup().Status)
	}
	b.succeed()
	b.at(3, 0)
	b.reconcile()
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{0, 1}) {
		t.Error("once:", got)
	}
	if last := b.backup().Status.LastScheduleTime; !last.Time.Equal(b.first()) {
		t.Error("a trigger is none of the schedule's:", last)
	}
}

// The name of a Job that the history limits have removed is free, but its minute had its run.
func TestTwoTriggersInAMinuteAreTwoMinutes(t *testing.T) {
	b := newFixture(t, func(x *backup) { x.Spec.Schedule, x.Spec.SuccessfulJobsHistoryLimit = "@yearly", new(int32(0)) })
	for i, value := range []string{"a", "b"} {
		b.edit(asks(value))
		b.at(3, 10+i)
		b.reconcile()
		if i == 0 {
			b.completes()
		}
	}
	if got := b.jobs(); len(got) > 0 || b.backup().Status.LastHandledTrigger != "a" {
		t.Errorf("the same minute ran twice: %v", got)
	}
	b.at(4, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{4}) || b.backup().Status.LastHandledTrigger != "b" {
		t.Errorf("and in the next: %v", got)
	}
}

// Each case has one end of a Job, and the report about it.
func TestOutcomes(t *testing.T) {
	failure := func(reason string, code int32) func(*fixture, *batchv1.Job) {
		return func(b *fixture, job *batchv1.Job) {
			b.run(job, b.ended(1, "Error", &result{Verb: "backup", Reason: "TargetNotReady", Message: "the first try"}))
			b.clock.SetTime(b.clock.Now().Add(5 * time.Second))
			b.run(job, b.ended(code, "Error", &result{Verb: "backup", Reason: reason, Message: "because"}))
			b.finish(job, batchv1.JobReasonBackoffLimitExceeded)
		}
	}
	without := func(reason string, change func(*corev1.PodStatus)) func(*fixture, *batchv1.Job) { // without a result
		return func(b *fixture, job *batchv1.Job) {
			status := b.ended(137, "Error", nil)
			change(&status)
			b.run(job, status)
			b.finish(job, reason)
		}
	}
	const evicted = "The node was low on resource: ephemeral-storage"
	for name, test := range map[string]struct {
		end  func(*fixture, *batchv1.Job)
		want string
		says string // a part of the message
	}{
		"a full volume": {failure("VolumeFull", 1), "False VolumeFull", "because"},
		"final":         {failure("VersionMismatch", 3), "False VersionMismatch", "because"},
		"no memory": {without(batchv1.JobReasonBackoffLimitExceeded, func(s *corev1.PodStatus) {
			end(s).Reason = "OOMKilled"
		}), "False OutOfMemory", "resources.limits.memory"},
		"a signal": {without(batchv1.JobReasonBackoffLimitExceeded, func(s *corev1.PodStatus) { end(s).ExitCode = 139 }),
			"False JobFailed", "code 139"},
		"no such program": {without(batchv1.JobReasonBackoffLimitExceeded, func(s *corev1.PodStatus) {
			end(s).ExitCode, end(s).Reason, end(s).Message = 128, "StartError", "executable file not found in $PATH"
		}), "False JobFailed", "executable file not found"},
		"an eviction": {without(batchv1.JobReasonBackoffLimitExceeded, func(s *corev1.PodStatus) {
			s.Reason, s.Message = "Evicted", evicted
		}), "False JobFailed", "Evicted: " + evicted},
		"evictions until the deadline": {without(batchv1.JobReasonDeadlineExceeded, func(s *corev1.PodStatus) {
			s.Reason, s.Message, s.ContainerStatuses = "Evicted", evicted, nil
		}), "False DeadlineExceeded", evicted},
		"success without a word": {without("", func(s *corev1.PodStatus) {
			s.Phase = corev1.PodSucceeded
			end(s).ExitCode = 0
		}), "Unknown ResultMissing", "left no result"},
		// A try may wait for the server almost as long as the Job may take.
		"too long, after a try that has a result": {func(b *fixture, job *batchv1.Job) {
			b.run(job, b.ended(1, "Error", &result{Verb: "backup", Reason: "TargetNotReady", Message: "connection refused"}))
			b.finish(job, batchv1.JobReasonDeadlineExceeded)
		}, "False DeadlineExceeded", "took longer than 3600 s; the last try: TargetNotReady: connection refused"},
		"deleted": {func(b *fixture, job *batchv1.Job) {
			b.must(b.Delete(b.t.Context(), job, client.PropagationPolicy("Background")))
		}, "False JobDeleted", "was deleted before its end was seen"},
		"good, and nobody knows what it did": {func(b *fixture, job *batchv1.Job) {
			b.finish(job, "")
			b.clock.SetTime(b.clock.Now().Add(31 * time.Second))
		}, "Unknown ResultMissing", "its pod is gone"},
		"good at the second try": {func(b *fixture, job *batchv1.Job) {
			b.run(job, b.ended(1, "Error", &result{Verb: "backup", Reason: "ConnectionLost", Message: "the first try"}))
			b.clock.SetTime(b.clock.Now().Add(5 * time.Second))
			b.run(job, b.ended(0, "Completed", b.taken(job.Name)...))
			b.finish(job, "")
		}, "True BackupSucceeded", "the backup was taken"},
	} {
		t.Run(name, func(t *testing.T) {
			b, job := newRun(t)
			test.end(b, job)
			b.reconcile()
			s := b.backup().Status
			got := condition(s.Conditions, "BackupSucceeded")
			if b.says("BackupSucceeded") != test.want || !strings.Contains(got.Message, test.says) {
				t.Errorf("%+v, want %s: %s", got, test.want, test.says)
			}
			if s.InProgress || s.ActiveJob != "" || s.LastJob != job.Name ||
				(s.LastBackupTime != nil) != (got.Status == metav1.ConditionTrue) {
				t.Errorf("status: %+v", s)
			}
			b.reconcile()
			if kept := b.jobs(); len(kept) > 1 {
				t.Error("it ran again:", kept)
			}
		})
	}
}

func end(s *corev1.PodStatus) *corev1.ContainerStateTerminated {
	return s.ContainerStatuses[0].State.Terminated
}

func TestWhatIsNotSeenYetIsWaitedFor(t *testing.T) {
	b, job := newRun(t)
	b.finish(job, "") // the operator has not seen its pod yet
	if requeueAfter := b.reconcile(); requeueAfter > 3*time.Second || !b.backup().Status.InProgress {
		t.Errorf("again in %s, %+v", requeueAfter, b.backup().Status)
	}
	b.run(job, b.ended(0, "Completed", b.taken(job.Name)...))
	b.reconcile()
	b.is("BackupSucceeded: True BackupSucceeded")
}

// The condition reports a Job whose pod does not start, and reports when the pod starts after all.
func TestABlockedPodIsReported(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: verbBackup, Image: "x",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	for name, test := range map[string]struct {
		status       corev1.PodStatus
		reason, says string
	}{
		"no node":  {unschedulable, "Unschedulable", "no volume"},
		"no image": {waiting("ImagePullBackOff", "no such image"), "ImageUnavailable", "no such image"},
		"no image for the first container": {corev1.PodStatus{Phase: corev1.PodPending,
			InitContainerStatuses: waiting("ErrImagePull", "no such image").ContainerStatuses,
			ContainerStatuses:     waiting("PodInitializing", "").ContainerStatuses}, "ImageUnavailable", "no such image"},
		"no Secret": {waiting("CreateContainerConfigError", `secret "credentials" not found`), "SecretNotFound",
			`secret "credentials"`},
	} {
		t.Run(name, func(t *testing.T) {
			b, job := newRun(t)
			b.run(job, test.status)
			b.reconcile()
			b.is("Ready: False " + test.reason)
			b.losePods()
			b.reconcile()
			b.is("Ready: False " + test.reason)
			b.mentions("Ready", test.says)
			b.finish(job, batchv1.JobReasonDeadlineExceeded)
			b.reconcile()
			b.is("Ready: True Scheduled", "BackupSucceeded: False DeadlineExceeded")
			b.mentions("BackupSucceeded", test.says)
		})
	}
}

func TestHistoryLimits(t *testing.T) {
	for name, test := range map[string]struct {
		good, bad int32
		want      []int
	}{
		"the defaults": {3, 1, []int{15, 20, 25, 30}},
		"none":         {0, 0, nil},
		"failures":     {1, 2, []int{5, 25, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, func(x *backup) {
				x.Spec.SuccessfulJobsHistoryLimit, x.Spec.FailedJobsHistoryLimit = &test.good, &test.bad
			})
			for i, bad := range []bool{false, true, false, false, false, true, false} {
				b.at(i*5, 0)
				b.reconcile()
				if bad {
					job := b.job(b.backup().Status.ActiveJob)
					b.run(job, b.ended(1, "Error", &result{Verb: "backup", Reason: "VolumeFull", Message: "full"}))
					b.finish(job, batchv1.JobReasonBackoffLimitExceeded)
				} else {
					b.succeed()
				}
				b.reconcile()
			}
			if got := b.jobs(); !slices.Equal(got, test.want) {
				t.Errorf("kept %v, want %v", got, test.want)
			}
			if n := len(b.backup().Status.Backups); n != 5 {
				t.Error("backups:", n)
			}
		})
	}
}

// Two replicas both believe that they lead, each with the state that it read before the other wrote.
func TestTwoReplicasMakeOneJob(t *testing.T) {
	b := newFixture(t, asks("once"), func(x *backup) { x.Spec.Schedule = "@yearly" })
	old := b.backup()
	b.at(0, 59)
	b.reconcile()
	b.at(1, 1) // the other replica would choose another minute
	other := b.replica()
	o, err := other.observe(t.Context(), old)
	b.must(err)
	status, _, _ := statusFor(old, observed{now: o.now, set: o.set, service: o.service})
	if status.ActiveJob == "" {
		t.Fatal("the other one wants nothing: the test is blind")
	}
	if err := other.updateStatus(t.Context(), old, status, nil); err == nil {
		t.Error("the other one could claim the run as well")
	}
	if got := b.jobs(); len(got) != 1 {
		t.Errorf("Jobs: %v", got)
	}
}

func TestANameThatIsTakenIsReportedAndLeftAlone(t *testing.T) {
	b := newFixture(t)
	slot := b.at(0, 0)
	unmanaged := desiredBackup(b.backup(), jobName(orders, slot), "")
	unmanaged.OwnerReferences, unmanaged.Labels = nil, map[string]string{"whose": "theirs"}
	b.must(b.Create(t.Context(), unmanaged))
	b.reconcile()
	b.is("BackupSucceeded: False JobNameTaken")
	if after := b.job(unmanaged.Name); after.ResourceVersion != unmanaged.ResourceVersion {
		t.Error("somebody else's Job was changed")
	}
	b.at(5, 0)
	b.reconcile()
	if got := b.jobs(); !slices.Equal(got, []int{5}) {
		t.Error("and the next slot:", got)
	}
}
