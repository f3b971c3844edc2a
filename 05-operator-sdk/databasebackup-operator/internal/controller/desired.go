package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// Names in Jobs. The component is the label with the purpose of a Job.
const (
	manager        = "databasebackup-operator"
	volumeRoot     = "/volume"
	scratch        = "/scratch"
	caFolder       = "/ca"
	passwordFolder = "/repository/password"
	storeCAFolder  = "/repository/ca"
	caFile         = "ca.crt"

	componentBackup  = "backup"
	componentDelete  = "delete"
	componentRestore = "restore"

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelManager   = "app.kubernetes.io/managed-by"

	// slotAnnotation has the minute that a Job's name stands for, in a form for people.
	slotAnnotation = "databases.test.io/slot"
)

// The verbs of pgbackup, which are the names of the containers. In a pod of a backup, backup takes the snapshot, verify
// restores it, and finish marks it as verified, checks the repository and prunes it.
const (
	verbBackup  = "backup"
	verbVerify  = "verify"
	verbFinish  = "finish"
	verbRestore = "restore"
	verbDelete  = "delete"
)

// The exit codes of pgbackup after which another pod cannot do better: exitFinal of every verb, exitNotVerified of
// verify, because the snapshot stays the same.
const exitFinal, exitNotVerified = 3, 4

// jobName is the name of the Job, and of the backup, of one minute. So a minute cannot have two Jobs.
func jobName(backup string, slot time.Time) string {
	return fmt.Sprintf("%s-%d", backup, slot.Unix()/60)
}

// Missing lists the fields of the spec that a DatabaseBackup needs to run and does not have.
func Missing(b *databasesv1.DatabaseBackup, defaultImage string) (fields []string) {
	auth := b.Spec.Auth
	if auth == nil {
		auth = &databasesv1.Auth{}
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"targetRef", b.Spec.TargetRef != nil},
		{"auth.usernameSecretRef", auth.UsernameSecretRef != nil},
		{"auth.passwordSecretRef", auth.PasswordSecretRef != nil},
		{"image", cmp.Or(b.Spec.Image, defaultImage) != ""},
		{"destination", b.Spec.Destination != nil},
	} {
		if !field.set {
			fields = append(fields, "spec."+field.name)
		}
	}
	return fields
}

// desiredBackup is the Job of one slot. Only the container with the database's credentials connects to it, and the
// container that restores the dump has no credentials.
func desiredBackup(b *databasesv1.DatabaseBackup, name string, defaultImage string) *batchv1.Job {
	r, mode := b.Spec.Retention, cmp.Or(b.Spec.Verification.Mode, databasesv1.VerifyArchive)
	slot, repository := slotOf(b.Name, name), repositoryOf(b, false)
	run := values(
		"BACKUP_OWNER", string(b.UID),
		"BACKUP_NAME", name,
		"BACKUP_SLOT", strconv.FormatInt(max(slot.Unix(), 0), 10),
		"BACKUP_VERIFY", string(mode),
		"BACKUP_TIME_ZONE", cmp.Or(b.Spec.TimeZone, "UTC"),
		"BACKUP_WAIT_SECONDS", waitSeconds(b.Spec.JobLimits))
	dump := step{verbBackup, slices.Concat(run, values("BACKUP_DATABASE", b.Spec.DatabaseName)),
		[]access{repository, serverOf(b.Namespace, b.Spec.TargetRef, b.Spec.Auth)}}
	finish := step{verbFinish, slices.Concat(run, values(
		"BACKUP_KEEP_LAST", number(ptr.Deref(r.KeepLast, 7)),
		"BACKUP_KEEP_DAILY", number(r.KeepDaily),
		"BACKUP_KEEP_WEEKLY", number(r.KeepWeekly),
		"BACKUP_KEEP_MONTHLY", number(r.KeepMonthly),
		"BACKUP_KEEP_WITHIN_DAYS", number(r.KeepWithinDays),
		"BACKUP_MAX_AGE_DAYS", number(r.MaxAgeDays))), []access{repository}}
	if claimOf(b) != "" {
		finish.settings = append(finish.settings, values("BACKUP_VOLUME", volumeRoot)...)
	}
	steps := []step{dump, finish}
	if mode == databasesv1.VerifyRestore {
		folder := scratchFolder(b.Spec.Resources)
		steps[0].access = append(steps[0].access, folder)
		verify := step{verbVerify, values("BACKUP_QUERY", b.Spec.Verification.Query), []access{folder}}
		steps = slices.Insert(steps, 1, verify)
	}
	job := newJob(b, componentBackup, b.Spec.JobLimits, defaultImage, steps...)
	job.Name, job.OwnerReferences = name, ownedBy(b, BackupKind)
	job.Annotations = map[string]string{slotAnnotation: slot.Format(time.RFC3339)}
	if trigger := b.Annotations[databasesv1.TriggerAnnotation]; trigger != "" {
		job.Annotations[databasesv1.TriggerAnnotation] = trigger
	}
	return job
}

// desiredDelete is the Job that removes the snapshots of a DatabaseBackup.
func desiredDelete(b *databasesv1.DatabaseBackup, defaultImage string) *batchv1.Job {
	settings := values("BACKUP_OWNER", string(b.UID), "BACKUP_WAIT_SECONDS", waitSeconds(b.Spec.JobLimits))
	job := newJob(b, componentDelete, b.Spec.JobLimits, defaultImage,
		step{verbDelete, settings, []access{repositoryOf(b, false)}})
	job.Name, job.OwnerReferences = b.Name+"-delete", ownedBy(b, BackupKind)
	return job
}

// desiredRestore is the Job of a DatabaseRestore from the repository of a source. When the DatabaseRestore names no
// database, the Job does not either: the snapshot says which database was dumped.
func desiredRestore(
	r *databasesv1.DatabaseRestore, source *databasesv1.DatabaseBackup, defaultImage string,
) *batchv1.Job {
	auth := r.Spec.Auth
	if auth == nil {
		auth = source.Spec.Auth
	}
	settings := values(
		"BACKUP_SNAPSHOT", r.Spec.Snapshot,
		"BACKUP_NAME", r.Spec.BackupName,
		"BACKUP_OWNER", string(source.UID),
		"BACKUP_DATABASE", r.Spec.DatabaseName,
		"BACKUP_RESTORE_UID", string(r.UID), // a later pod of the Job recognises the end of an earlier one by it
		"BACKUP_WAIT_SECONDS", waitSeconds(r.Spec.JobLimits))
	job := newJob(source, componentRestore, r.Spec.JobLimits, defaultImage, step{verbRestore, settings,
		[]access{repositoryOf(source, true), serverOf(r.Namespace, targetOfRestore(r, source), auth)}})
	job.Name, job.OwnerReferences = r.Name+"-restore", ownedBy(r, RestoreKind)
	job.Labels = labels(r.Name, componentRestore)
	job.Spec.Template.Labels = labels(r.Name, componentRestore)
	return job
}

// ownedBy makes an object the controller of a Job. It does not block the object's deletion, which would need another
// permission.
func ownedBy(owner metav1.Object, kind schema.GroupVersionKind) []metav1.OwnerReference {
	ref := metav1.NewControllerRef(owner, kind)
	ref.BlockOwnerDeletion = nil
	return []metav1.OwnerReference{*ref}
}

func labels(instance, component string) map[string]string {
	return map[string]string{
		labelName: "databasebackup", labelInstance: instance, labelComponent: component, labelManager: manager}
}

// newJob is a Job whose pods run some steps on the repository of a DatabaseBackup. It stays until the history limits
// remove it: with a time to live it could be removed before its result was read. All pods of one DatabaseBackup have one
// host name: restic recognises the lock of a pod that died by its host name and process number.
func newJob(
	b *databasesv1.DatabaseBackup, component string, limits databasesv1.JobLimits, defaultImage string, steps ...step,
) *batchv1.Job {
	pod := podOf(cmp.Or(b.Spec.Image, defaultImage), limits.Resources, steps...)
	if b.UID != "" {
		pod.Hostname = "dbb-" + string(b.UID)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Labels: labels(b.Name, component)},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(ptr.Deref(limits.BackoffLimit, 2)),
			ActiveDeadlineSeconds: new(ptr.Deref(limits.ActiveDeadlineSeconds, 3600)),
			// A new pod waits until the previous pod is gone: the host name would not tell their locks apart.
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy:     &batchv1.PodFailurePolicy{},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(b.Name, component)}, Spec: pod},
		},
	}
	rules := &job.Spec.PodFailurePolicy.Rules
	for _, s := range steps {
		codes := []int32{exitFinal}
		if s.verb == verbVerify {
			codes = append(codes, exitNotVerified)
		}
		*rules = append(*rules, batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: new(s.verb),
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes}})
	}
	// A drained node is not the backup's fault.
	*rules = append(*rules, batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}})
	return job
}

// waitSeconds is how long a Job waits for its server, and for another run that uses the repository. It ends a minute
// before the deadline of the Job, so that the Job can report why it did nothing.
func waitSeconds(limits databasesv1.JobLimits) string {
	return strconv.FormatInt(min(max(ptr.Deref(limits.ActiveDeadlineSeconds, 3600)-60, 30), 86400), 10)
}

func number(n int32) string { return strconv.Itoa(int(n)) }
