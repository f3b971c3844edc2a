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

// environment returns the variables as the program sees them: $$ becomes $, and a secret is shown as its reference.
func environment(job *batchv1.Job) map[string]string {
	pod := job.Spec.Template.Spec
	return environmentOf(slices.Concat(pod.InitContainers, pod.Containers)[0])
}

func environmentOf(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = strings.ReplaceAll(e.Value, "$$", "$")
		if e.ValueFrom != nil {
			env[e.Name] = "secret " + e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	return env
}

// mounts returns the volumes of a container, as "name path", with "read-only" where it may not write.
func mounts(c corev1.Container) (all []string) {
	for _, m := range c.VolumeMounts {
		mount := m.Name + " " + m.MountPath
		if m.ReadOnly {
			mount += " read-only"
		}
		all = append(all, mount)
	}
	return all
}

func TestABackupJobIsNamedByItsMinute(t *testing.T) {
	b := complete("shop")
	slot := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
	job := desiredBackup(b, jobName(b.Name, slot), "")
	if job.Name != "orders-29579190" || job.Annotations[slotAnnotation] != "2026-03-29T02:30:00Z" ||
		!slotOf(b.Name, job.Name).Equal(slot) {
		t.Errorf("%s stands for %s", job.Name, job.Annotations[slotAnnotation])
	}
	escaped := corev1.EnvVar{Name: "BACKUP_DATABASE", Value: `o'brien "x" $$(HOME)`}
	if !slices.Contains(job.Spec.Template.Spec.InitContainers[0].Env, escaped) {
		t.Error("Kubernetes would replace $(HOME) in the name of the database")
	}
	main := job.Spec.Template.Spec.InitContainers[0]
	args := slices.Concat(main.Command, main.Args)
	if !slices.Equal(args, []string{"pgbackup", "backup"}) {
		t.Error("nothing else is on the command line:", args)
	}
}

// The certificates of the authorities come from a Secret or a ConfigMap, and only the Jobs that connect get them.
func TestTheAuthorityOfTLSIsMounted(t *testing.T) {
	key := &databasesv1.KeyReference{Name: "authority", Key: "tls.crt"}
	items := []corev1.KeyToPath{{Key: "tls.crt", Path: "ca.crt"}}
	for name, test := range map[string]struct {
		ca   databasesv1.CAReference
		want corev1.VolumeSource
	}{
		"Secret": {databasesv1.CAReference{SecretKeyRef: key},
			corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "authority", Items: items, Optional: new(true),
				DefaultMode: new(int32(0o400))}}},
		"ConfigMap": {databasesv1.CAReference{ConfigMapKeyRef: key},
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "authority"}, Items: items, Optional: new(true)}}},
	} {
		b := complete("shop")
		b.Spec.TargetRef.TLS = databasesv1.TLS{Mode: databasesv1.TLSVerifyCA, CA: &test.ca}
		r := &databasesv1.DatabaseRestore{Spec: databasesv1.DatabaseRestoreSpec{BackupName: "orders-7"}}
		for _, job := range []*batchv1.Job{desiredBackup(b, "orders-1", ""), desiredRestore(r, b, "")} {
			pod := job.Spec.Template.Spec
			ca := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "ca" })
			if diff := cmp.Diff(corev1.Volume{Name: "ca", VolumeSource: test.want}, pod.Volumes[ca]); diff != "" {
				t.Errorf("%s, %s: %s", name, job.Name, diff)
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				if connects := c.Name != verbFinish; slices.Contains(mounts(c), "ca /ca read-only") != connects {
					t.Errorf("%s, %s: mounts of %s: %v", name, job.Name, c.Name, mounts(c))
				}
			}
			if env := environment(job); env["PGSSLMODE"] != "verify-ca" || env["PGSSLROOTCERT"] != "/ca/ca.crt" {
				t.Errorf("%s, %s: %v", name, job.Name, env)
			}
		}
		if volumes := desiredDelete(b, "").Spec.Template.Spec.Volumes; slices.ContainsFunc(volumes,
			func(v corev1.Volume) bool { return v.Name == "ca" }) {
			t.Errorf("%s: a deletion does not connect", name)
		}
	}
	// A restore to another server uses the settings for that server.
	b, r := complete("shop"), &databasesv1.DatabaseRestore{Spec: databasesv1.DatabaseRestoreSpec{
		TargetRef: &databasesv1.TargetReference{Name: "spare"}}}
	b.Spec.TargetRef.TLS = databasesv1.TLS{Mode: databasesv1.TLSVerifyCA, CA: &databasesv1.CAReference{SecretKeyRef: key}}
	if env := environment(desiredRestore(r, b, "")); env["PGSSLMODE"] != "prefer" || env["PGSSLROOTCERT"] != "" {
		t.Errorf("another server: %v", env)
	}
}

func TestTheEnvironmentOfARestore(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday"},
		Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: orders, BackupName: "orders-7"}}
	job := desiredRestore(r, b, "")
	if env := environment(job); env["BACKUP_DATABASE"] != "" {
		t.Errorf("without a database, pgbackup takes the one that was dumped: %v", env)
	}
	if !slices.Contains(mounts(job.Spec.Template.Spec.Containers[0]), "backups /volume read-only") {
		t.Error("a restore could write to the volume")
	}
	key := &databasesv1.KeyReference{Name: "admin", Key: "k"}
	r.Spec = databasesv1.DatabaseRestoreSpec{BackupName: "orders-7",
		TargetRef: &databasesv1.TargetReference{Name: "spare"}, Auth: &databasesv1.Auth{UsernameSecretRef: key,
			PasswordSecretRef: key}}
	env := environment(desiredRestore(r, b, ""))
	for name, value := range map[string]string{"BACKUP_OWNER": "7e1b", "PGHOST": "spare.shop.svc", "PGPORT": "5432",
		"PGUSER": "secret admin/k", "PGPASSWORD": "secret admin/k"} {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
}

// A Job that waits for another run on the volume gives up a minute before its deadline, and reports why.
func TestAJobWaitsAlmostAsLongAsItMayTake(t *testing.T) {
	for seconds, want := range map[int64]string{1: "30", 90: "30", 91: "31", 3600: "3540", 604800: "86400"} {
		b := complete("shop")
		b.Spec.ActiveDeadlineSeconds = &seconds
		if got := environment(desiredBackup(b, "orders-1", ""))["BACKUP_WAIT_SECONDS"]; got != want {
			t.Errorf("of %d s it waits %s, want %s", seconds, got, want)
		}
	}
}

// The container that restores a backup to verify it has no access to the repository or the credentials, and shares no
// folder with the container that prunes the repository. It exists only in mode Restore.
func TestTheVerifyingContainerHasTheDumpAlone(t *testing.T) {
	b := complete("shop")
	b.Spec.TargetRef.TLS = databasesv1.TLS{Mode: databasesv1.TLSVerifyCA,
		CA: &databasesv1.CAReference{SecretKeyRef: &databasesv1.KeyReference{Name: "authority", Key: "k"}}}
	if got := containersOf(desiredBackup(b, "orders-1", "")); !slices.Equal(got, []string{verbBackup, verbFinish}) {
		t.Error("in mode Archive:", got)
	}
	b.Spec.Verification = databasesv1.Verification{Mode: databasesv1.VerifyRestore, Query: "SELECT true"}
	b.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("3Gi")}
	job := desiredBackup(b, "orders-1", "")
	pod := job.Spec.Template.Spec
	if got := containersOf(job); !slices.Equal(got, []string{verbBackup, verbVerify, verbFinish}) {
		t.Fatal(got)
	}
	c, folder := pod.InitContainers[1], "scratch /scratch"
	if diff := cmp.Diff([]string{folder, "tmp-verify /tmp"}, mounts(c)); diff != "" {
		t.Errorf("mounts: %s", diff)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "BACKUP_QUERY", Value: "SELECT true"}}, c.Env); diff != "" ||
		len(c.EnvFrom) > 0 {
		t.Errorf("environment: %s", diff)
	}
	if c.RestartPolicy != nil || pod.ShareProcessNamespace != nil {
		t.Error("the containers run at the same time, or see each other's processes")
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.Name == "scratch" || mount.Name == "tmp-verify" {
			t.Error("finish reads what verify wrote:", mount)
		}
	}
	i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "scratch" })
	if limit := pod.Volumes[i].EmptyDir.SizeLimit; limit == nil || limit.String() != "3Gi" {
		t.Error("it may fill", limit)
	}
	if !slices.Contains(mounts(pod.InitContainers[0]), folder) {
		t.Error("the dump has no way to it")
	}
}

// A second try cannot change a final failure, or what verify says of the same snapshot.
func TestAFinalFailureOfEachContainerEndsTheJob(t *testing.T) {
	b := complete("shop")
	b.Spec.Verification.Mode = databasesv1.VerifyRestore
	final := map[string][]int32{}
	for _, rule := range desiredBackup(b, "orders-1", "").Spec.PodFailurePolicy.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionFailJob {
			final[*rule.OnExitCodes.ContainerName] = rule.OnExitCodes.Values
		}
	}
	if diff := cmp.Diff(map[string][]int32{verbBackup: {3}, verbVerify: {3, 4}, verbFinish: {3}}, final); diff != "" {
		t.Error(diff)
	}
}

// A namespace that enforces the restricted Pod Security Standard accepts the pods of all Jobs, and the API server
// accepts the Jobs unchanged.
func TestPodsAreRestricted(t *testing.T) {
	c, namespace := newClient(t)
	ns := &corev1.Namespace{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: namespace}, ns))
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	must(t, c.Update(t.Context(), ns))
	b := complete(namespace)
	b.UID = "7e1b"
	b.Spec.Verification.Mode = databasesv1.VerifyRestore
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday", UID: "8f2c"},
		Spec: databasesv1.DatabaseRestoreSpec{BackupName: "x"}}
	for _, job := range []*batchv1.Job{desiredBackup(b, "orders-1", ""), desiredDelete(b, ""), desiredRestore(r, b, "")} {
		if err := client.WithFieldValidation(c, "Strict").Create(t.Context(), job); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job.Name}, Spec: job.Spec.Template.Spec}
		if err := c.Create(t.Context(), pod); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
		if s := job.Spec; *s.Template.Spec.AutomountServiceAccountToken || s.TTLSecondsAfterFinished != nil ||
			*s.BackoffLimit != 2 || *s.ActiveDeadlineSeconds != 3600 {
			t.Errorf("%s: %+v", job.Name, s)
		}
	}
}
