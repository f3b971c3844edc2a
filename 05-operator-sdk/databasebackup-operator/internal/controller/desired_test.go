package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// environment is what the program sees: $$ is a $, secrets are where they come from.
func environment(job *batchv1.Job) map[string]string {
	env := map[string]string{}
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = strings.ReplaceAll(e.Value, "$$", "$")
		if e.ValueFrom != nil {
			env[e.Name] = "secret " + e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	return env
}

func TestTheEnvironmentOfABackup(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	b.Spec.TimeZone = "Europe/Berlin"
	b.Spec.Retention = databasesv1.Retention{KeepLast: new(int32(3)), KeepDaily: 4, KeepWeekly: 5, KeepMonthly: 6, MaxAgeDays: 7}
	b.Spec.Verification = databasesv1.Verification{Mode: databasesv1.VerifyRestore, Query: "SELECT $1 > 0"}
	slot := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
	job := desiredBackup(b, jobName(b.Name, slot), "")
	want := map[string]string{
		"BACKUP_ROOT": "/volume", "BACKUP_DIR": "/volume/backups/orders", "BACKUP_OWNER": "7e1b", "BACKUP_NAME": "orders-29579190",
		"BACKUP_DATABASE": `o'brien "x" $(HOME)`, "PGHOST": "db-rw.shop.svc", "PGPORT": "5433",
		"PGUSER": "secret credentials/user", "PGPASSWORD": "secret credentials/password",
		"BACKUP_VERIFY": "Restore", "BACKUP_QUERY": "SELECT $1 > 0", "BACKUP_SCRATCH": "/scratch",
		"BACKUP_KEEP_LAST": "3", "BACKUP_KEEP_DAILY": "4", "BACKUP_KEEP_WEEKLY": "5", "BACKUP_KEEP_MONTHLY": "6",
		"BACKUP_MAX_AGE_DAYS": "7", "BACKUP_TIME_ZONE": "Europe/Berlin", "BACKUP_WAIT_SECONDS": "3540",
	}
	if diff := cmp.Diff(want, environment(job)); diff != "" {
		t.Error(diff)
	}
	if job.Name != "orders-29579190" || job.Annotations[slotAnnotation] != "2026-03-29T02:30:00Z" || !slotOf(b.Name, job.Name).Equal(slot) {
		t.Errorf("%s stands for %s", job.Name, job.Annotations[slotAnnotation])
	}
	escaped := corev1.EnvVar{Name: "BACKUP_DATABASE", Value: `o'brien "x" $$(HOME)`}
	if !slices.Contains(job.Spec.Template.Spec.Containers[0].Env, escaped) {
		t.Error("Kubernetes would replace $(HOME) in the name of the database")
	}
	args := slices.Concat(job.Spec.Template.Spec.Containers[0].Command, job.Spec.Template.Spec.Containers[0].Args)
	if !slices.Equal(args, []string{"pgbackup", "backup"}) {
		t.Error("nothing else is on the command line:", args)
	}
}

func TestAPathNeverLeavesTheVolume(t *testing.T) {
	for given, want := range map[string]string{"/": "/volume", "/a//b/": "/volume/a/b", "/a/./b": "/volume/a/b", "/..a": "/volume/..a"} {
		b := complete("shop")
		b.Spec.BackupPath = given
		if got := environment(desiredBackup(b, "orders-1", ""))["BACKUP_DIR"]; got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}

func TestTheEnvironmentOfARestore(t *testing.T) {
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday"},
		Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: orders, BackupName: "orders-7"}}
	b := complete("shop")
	b.UID = "7e1b"
	want := map[string]string{
		"BACKUP_ROOT": "/volume", "BACKUP_DIR": "/volume/backups/orders", "BACKUP_OWNER": "7e1b", "BACKUP_NAME": "orders-7", "BACKUP_OVERWRITE": "false",
		"BACKUP_WAIT_SECONDS": "3540", "PGHOST": "db-rw.shop.svc", "PGPORT": "5433",
		"PGUSER": "secret credentials/user", "PGPASSWORD": "secret credentials/password",
	}
	job := desiredRestore(r, b, "")
	// Without a database, pgbackup takes the one that was dumped, by what it noted then.
	if diff := cmp.Diff(want, environment(job)); diff != "" {
		t.Error(diff)
	}
	if mount := job.Spec.Template.Spec.Containers[0].VolumeMounts[0]; !mount.ReadOnly {
		t.Error("a restore could write to the volume")
	}
	key := &databasesv1.SecretKeyReference{Name: "admin", Key: "k"}
	r.Spec = databasesv1.DatabaseRestoreSpec{BackupName: "orders-7", BackupOwnerUID: "old", DatabaseName: "other", Overwrite: true,
		TargetRef: &databasesv1.TargetReference{Name: "spare"}, Auth: &databasesv1.Auth{UsernameSecretRef: key, PasswordSecretRef: key}}
	for name, value := range map[string]string{"BACKUP_OWNER": "old", "BACKUP_OVERWRITE": "true", "BACKUP_DATABASE": "other",
		"PGHOST": "spare.shop.svc", "PGPORT": "5432", "PGUSER": "secret admin/k", "PGPASSWORD": "secret admin/k"} {
		want[name] = value
	}
	if diff := cmp.Diff(want, environment(desiredRestore(r, b, ""))); diff != "" {
		t.Error("with all that a restore can say:", diff)
	}
}

func TestTheEnvironmentOfADeletion(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	job := desiredDelete(b, "")
	want := map[string]string{"BACKUP_ROOT": "/volume", "BACKUP_DIR": "/volume/backups/orders", "BACKUP_OWNER": "7e1b", "BACKUP_WAIT_SECONDS": "3540"}
	if diff := cmp.Diff(want, environment(job)); diff != "" || job.Name != "orders-delete" {
		t.Error(job.Name, diff)
	}
}

// Who waits for another run on the volume gives up a minute before the Job is ended, and says why.
func TestAJobWaitsAlmostAsLongAsItMayTake(t *testing.T) {
	for seconds, want := range map[int64]string{1: "30", 90: "30", 91: "31", 3600: "3540", 604800: "86400"} {
		b := complete("shop")
		b.Spec.ActiveDeadlineSeconds = &seconds
		if got := environment(desiredBackup(b, "orders-1", ""))["BACKUP_WAIT_SECONDS"]; got != want {
			t.Errorf("of %d s it waits %s, want %s", seconds, got, want)
		}
	}
}

func TestScratchIsAsLargeAsTheLimit(t *testing.T) {
	b := complete("shop")
	size := func() *resource.Quantity {
		return desiredBackup(b, "orders-1", "").Spec.Template.Spec.Volumes[1].EmptyDir.SizeLimit
	}
	if got := size(); got != nil {
		t.Error("no limit, and scratch has", got)
	}
	b.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("3Gi")}
	if got := size(); got == nil || got.String() != "3Gi" {
		t.Error("scratch has", got)
	}
}

// A namespace that enforces the restricted Pod Security Standard takes the pods of all Jobs, and the API server
// takes the Jobs as they are.
func TestPodsAreRestricted(t *testing.T) {
	c, namespace := newClient(t)
	ns := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := c.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b := complete(namespace)
	b.UID = "7e1b"
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday", UID: "8f2c"}, Spec: databasesv1.DatabaseRestoreSpec{BackupName: "x"}}
	for _, job := range []*batchv1.Job{desiredBackup(b, "orders-1", ""), desiredDelete(b, ""), desiredRestore(r, b, "")} {
		if err := client.WithFieldValidation(c, "Strict").Create(t.Context(), job); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job.Name}, Spec: job.Spec.Template.Spec}
		if err := c.Create(t.Context(), pod); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
		if s := job.Spec; *s.Template.Spec.AutomountServiceAccountToken || s.TTLSecondsAfterFinished != nil || *s.BackoffLimit != 2 || *s.ActiveDeadlineSeconds != 3600 {
			t.Errorf("%s: %+v", job.Name, s)
		}
	}
}
