package controller

import (
	"cmp"
	"fmt"
	"path"
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
	manager       = "databasebackup-operator"
	containerName = "pgbackup"
	scratchName   = "scratch"
	volumeRoot    = "/volume"
	scratch       = "/scratch"
	caFolder      = "/ca"
	caFile        = "ca.crt"

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

// exitFinal is pgbackup's exit code for a failure that another try cannot fix.
const exitFinal = 3

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
		{"destination", claimOf(b) != ""},
	} {
		if !field.set {
			fields = append(fields, "spec."+field.name)
		}
	}
	return fields
}

// claimOf is the name of the volume claim, empty when the spec names none.
func claimOf(b *databasesv1.DatabaseBackup) string {
	if d := b.Spec.Destination; d != nil && d.PersistentVolumeClaim != nil {
		return d.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// desiredBackup is the Job of one slot.
func desiredBackup(b *databasesv1.DatabaseBackup, name string, defaultImage string) *batchv1.Job {
	env := connection(b.Namespace, b.Spec.TargetRef, b.Spec.Auth, b.Spec.DatabaseName)
	r, v := b.Spec.Retention, b.Spec.Verification
	env = append(env, values(
		"BACKUP_NAME", name,
		"BACKUP_VERIFY", cmp.Or(string(v.Mode), string(databasesv1.VerifyArchive)),
		"BACKUP_QUERY", v.Query,
		"BACKUP_CHECK_AGAIN", brokenNames(b.Status.Backups),
		"BACKUP_SCRATCH", scratch,
		"BACKUP_KEEP_LAST", number(ptr.Deref(r.KeepLast, 7)),
		"BACKUP_KEEP_DAILY", number(r.KeepDaily),
		"BACKUP_KEEP_WEEKLY", number(r.KeepWeekly),
		"BACKUP_KEEP_MONTHLY", number(r.KeepMonthly),
		"BACKUP_MAX_AGE_DAYS", number(r.MaxAgeDays),
		"BACKUP_TIME_ZONE", cmp.Or(b.Spec.TimeZone, "UTC"),
	)...)
	job := newJob(b, "backup", componentBackup, string(b.UID), env, b.Spec.JobLimits, defaultImage)
	job.Namespace, job.Name = b.Namespace, name
	job.Annotations = map[string]string{}
	if slot := slotOf(b.Name, name); !slot.IsZero() {
		job.Annotations[slotAnnotation] = slot.UTC().Format(time.RFC3339)
	}
	if trigger := b.Annotations[databasesv1.TriggerAnnotation]; trigger != "" {
		job.Annotations[databasesv1.TriggerAnnotation] = trigger
	}
	job.OwnerReferences = ownedBy(b, BackupKind)
	mountCA(&job.Spec.Template.Spec, b.Spec.TargetRef.TLS.CA)
	if v.Mode == databasesv1.VerifyRestore {
		addScratch(&job.Spec.Template.Spec)
	}
	return job
}

// desiredDelete is the Job that removes the files of a DatabaseBackup.
func desiredDelete(b *databasesv1.DatabaseBackup, defaultImage string) *batchv1.Job {
	job := newJob(b, "delete", componentDelete, string(b.UID), nil, b.Spec.JobLimits, defaultImage)
	job.Namespace, job.Name = b.Namespace, b.Name+"-delete"
	job.OwnerReferences = ownedBy(b, BackupKind)
	return job
}

// desiredRestore is the Job of a DatabaseRestore from a volume of a DatabaseBackup. When the DatabaseRestore names no
// database, the Job does not either: pgbackup knows which database was dumped.
func desiredRestore(r *databasesv1.DatabaseRestore, b *databasesv1.DatabaseBackup, defaultImage string) *batchv1.Job {
	target, auth := targetOfRestore(r, b), r.Spec.Auth
	if auth == nil {
		auth = b.Spec.Auth
	}
	env := connection(b.Namespace, target, auth, r.Spec.DatabaseName)
	env = append(env, values(
		"BACKUP_NAME", r.Spec.BackupName,
		"BACKUP_RESTORE_UID", string(r.UID), // a later pod of the Job recognises the end of an earlier one by it
		"BACKUP_OVERWRITE", strconv.FormatBool(r.Spec.Overwrite))...)
	owner := cmp.Or(r.Spec.BackupOwnerUID, string(b.UID))
	job := newJob(b, "restore", componentRestore, owner, env, r.Spec.JobLimits, defaultImage)
	job.Namespace, job.Name = r.Namespace, r.Name+"-restore"
	job.Labels = labels(r.Name, componentRestore)
	job.Spec.Template.Labels = labels(r.Name, componentRestore)
	job.OwnerReferences = ownedBy(r, RestoreKind)
	mountCA(&job.Spec.Template.Spec, target.TLS.CA)
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

// newJob is a Job that runs one command of pgbackup on the volume of a DatabaseBackup. It stays until the history
// limits remove it: with a time to live it could be removed before its result was read.
func newJob(
	b *databasesv1.DatabaseBackup, verb, component, owner string, env []corev1.EnvVar,
	limits databasesv1.JobLimits, defaultImage string,
) *batchv1.Job {
	env = append(values(
		"BACKUP_ROOT", volumeRoot,
		"BACKUP_DIR", path.Join(volumeRoot, b.Spec.BackupPath),
		"BACKUP_OWNER", owner,
		"BACKUP_WAIT_SECONDS", strconv.FormatInt(waitSeconds(limits), 10),
	), env...)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(b.Name, component)},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(ptr.Deref(limits.BackoffLimit, 2)),
			ActiveDeadlineSeconds: new(ptr.Deref(limits.ActiveDeadlineSeconds, 3600)),
			// A new pod waits until the previous pod is gone: two pods would wait for each other's lock.
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionFailJob,
					OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: new(containerName),
						Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{exitFinal}}},
				// A drained node is not the backup's fault.
				{Action: batchv1.PodFailurePolicyActionIgnore,
					OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
						{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(b.Name, component)},
				Spec:       podOf(verb, cmp.Or(b.Spec.Image, defaultImage), claimOf(b), env, limits.Resources),
			},
		},
	}
}

// waitSeconds is how long a Job waits for its server, and for another run on the volume. It ends a minute before the
// deadline of the Job, so that the Job can report why it did nothing.
func waitSeconds(limits databasesv1.JobLimits) int64 {
	return min(max(ptr.Deref(limits.ActiveDeadlineSeconds, 3600)-60, 30), 86400)
}

func number(n int32) string { return strconv.Itoa(int(n)) }
