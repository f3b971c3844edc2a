package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

const monday = "monday"

func (b *fixture) ask(change ...func(*databasesv1.DatabaseRestore)) {
	b.t.Helper()
	r := &databasesv1.DatabaseRestore{ObjectMeta: b.meta(monday),
		Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: orders, BackupName: "orders-7"}}
	for _, f := range change {
		f(r)
	}
	b.must(b.Create(b.t.Context(), r))
}

func (b *fixture) key() types.NamespacedName {
	return types.NamespacedName{Namespace: b.namespace, Name: monday}
}

func (b *fixture) restore() *databasesv1.DatabaseRestore {
	b.t.Helper()
	r := &databasesv1.DatabaseRestore{}
	b.must(b.Get(b.t.Context(), b.key(), r))
	return r
}

// follow lets the operator run until it writes nothing more.
func (b *fixture) follow() {
	b.t.Helper()
	for range 10 {
		before := len(b.writes)
		_, err := b.restorer.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: b.key()})
		b.must(err)
		if len(b.writes) == before {
			return
		}
	}
	b.t.Fatalf("it does not come to rest: %v", b.writes)
}

// outcome is "status reason: message" of the restore.
func (b *fixture) outcome() string {
	c := condition(b.restore().Status.Conditions, databasesv1.ConditionSucceeded)
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func (b *fixture) want(text string) {
	b.t.Helper()
	if got := b.outcome(); !strings.HasPrefix(got, text) {
		b.t.Errorf("got %s, want %s", got, text)
	}
}

func TestARestore(t *testing.T) {
	b := newFixture(t)
	b.ask()
	b.follow()
	b.want("Unknown Restoring")
	job := b.job("monday-restore")
	if env := environmentOf(job.Spec.Template.Spec.Containers[0]); env["BACKUP_RESTORE_UID"] != string(b.restore().UID) {
		t.Errorf("the Job has the UID %q", env["BACKUP_RESTORE_UID"])
	}
	b.follow()
	if s := b.restore().Status; !s.InProgress || s.StartTime == nil || s.JobName != job.Name {
		t.Errorf("a working restore: %+v", s)
	}
	b.run(job,
		b.ended(0, "Completed", &result{Verb: "restore", Succeeded: true, Reason: "RestoreSucceeded", Message: "2 tables",
			Warning:  `role "guest" does not exist`,
			Restored: &databasesv1.Restored{Database: "orders", Tables: 2, LeftOut: []string{"event trigger audit"}}}))
	b.finish(job, "")
	b.follow()
	b.want(`True RestoreSucceeded: 2 tables; role "guest" does not exist`)
	s := b.restore().Status
	if s.InProgress || s.CompletionTime == nil || s.Restored.Tables != 2 || len(s.Restored.LeftOut) != 1 {
		t.Errorf("a restore that ended: %+v", s)
	}
	b.must(b.Delete(t.Context(), job, client.PropagationPolicy("Background")))
	b.writes = nil
	b.follow()
	if len(b.writes) > 0 {
		t.Error("it has ended, and goes on:", b.writes)
	}
}

func TestARestoreWhoseJobIsDeletedDoesNotBeginAgain(t *testing.T) {
	b := newFixture(t)
	b.ask()
	b.follow()
	b.must(b.Delete(t.Context(), b.job("monday-restore"), client.PropagationPolicy("Background")))
	for range 2 {
		b.follow()
		b.want("False JobDeleted")
	}
	if n := b.restoreJobs(); n > 0 {
		t.Error("it was begun a second time")
	}
}

func TestARestoreWaitsForItsDatabaseBackup(t *testing.T) {
	b := newFixture(t)
	b.ask(func(r *databasesv1.DatabaseRestore) { r.Spec.DatabaseBackupName = "other" })
	b.follow()
	b.want("Unknown DatabaseBackupNotFound: DatabaseBackup other")
	other := complete(b.namespace)
	other.Name, other.Spec.Image, other.Spec.TargetRef = "other", "", nil
	b.must(b.Create(t.Context(), other))
	b.follow()
	b.want("Unknown IncompleteSpec: DatabaseBackup other lacks spec.targetRef, spec.image")
	other.Spec = complete("").Spec
	b.must(b.Update(t.Context(), other))
	b.follow()
	b.want("Unknown Restoring")
}

// A user who creates a DatabaseBackup of that name months later does not expect that a restore begins.
func TestARestoreDoesNotWaitForeverForItsDatabaseBackup(t *testing.T) {
	b := newFixture(t)
	b.ask(func(r *databasesv1.DatabaseRestore) { r.Spec.DatabaseBackupName = "other" })
	made := b.restore().CreationTimestamp.Time
	b.clock.SetTime(made.Add(9*time.Minute + 30*time.Second))
	b.follow()
	b.want("Unknown DatabaseBackupNotFound: DatabaseBackup other")
	result, err := b.restorer.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key()})
	b.must(err)
	if requeueAfter := result.RequeueAfter; requeueAfter < 30*time.Second || requeueAfter > 31*time.Second {
		t.Errorf("it reconciles again in %s", requeueAfter)
	}
	b.clock.SetTime(made.Add(10 * time.Minute))
	b.follow()
	b.want("False DatabaseBackupNotFound: DatabaseBackup other")
	if b.restore().Status.CompletionTime == nil {
		t.Error("it has no end")
	}
	other := complete(b.namespace)
	other.Name = "other"
	b.must(b.Create(t.Context(), other))
	b.follow()
	b.want("False DatabaseBackupNotFound")
}

func TestARestoreLeavesSomebodysJobAlone(t *testing.T) {
	b := newFixture(t)
	unmanaged := desiredDelete(b.backup(), "")
	unmanaged.Name, unmanaged.Labels = "monday-restore", map[string]string{"whose": "theirs"}
	b.must(b.Create(t.Context(), unmanaged))
	b.ask()
	for range 3 {
		b.retriesSoon(b.restorer.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key()}))
		b.want("Unknown JobNameTaken")
	}
	b.must(b.Delete(t.Context(), unmanaged, client.PropagationPolicy("Background")))
	b.follow()
	b.want("Unknown Restoring")
}

// The cluster that took the backup is gone: a restore names the repository, and no DatabaseBackup exists.
func TestARestoreFromARepositoryNeedsNoDatabaseBackup(t *testing.T) {
	repository := func(r *databasesv1.DatabaseRestore) {
		r.Spec = databasesv1.DatabaseRestoreSpec{Snapshot: "1a2b3c4d",
			Repository: &databasesv1.Repository{Destination: databasesv1.Destination{S3: &databasesv1.S3Destination{
				Endpoint: "https://s3.example.com", Bucket: "company",
				CredentialsSecretRef: databasesv1.SecretReference{Name: "store"}}},
				Encryption: databasesv1.Encryption{PasswordSecretRef: databasesv1.KeyReference{Name: "kept", Key: "p"}}},
			TargetRef: complete("").Spec.TargetRef, Auth: complete("").Spec.Auth}
	}
	b := newFixture(t)
	b.must(b.Delete(t.Context(), b.backup()))
	b.ask(repository)
	b.follow()
	b.want("Unknown IncompleteSpec: the operator has no default image for Jobs")
	b.restorer.Image = "example.com/pgbackup:v1"
	b.follow()
	b.want("Unknown Restoring")
	job := b.job("monday-restore")
	env := environment(job)
	if env["RESTIC_REPOSITORY"] != "s3:https://s3.example.com/company" || env["BACKUP_SNAPSHOT"] != "1a2b3c4d" ||
		env["BACKUP_OWNER"] != "" {
		t.Error(env)
	}
	i := slices.IndexFunc(job.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "password" })
	if s := job.Spec.Template.Spec.Volumes[i].Secret; s.SecretName != "kept" || *s.DefaultMode != 0o400 {
		t.Errorf("the password: %+v", s)
	}
	b.run(job, b.ended(3, "Error", &result{Verb: "restore", Reason: "RepositoryPasswordWrong", Message: "another password"}))
	b.finish(job, "PodFailurePolicy")
	b.follow()
	b.want("False RepositoryPasswordWrong: another password")
}

// The host of a store gets the credentials of a Secret.
func TestARestoreFromAStoreThatIsNotAllowedDoesNotRun(t *testing.T) {
	b := newFixture(t)
	b.restorer.Image, b.restorer.Stores = "example.com/pgbackup:v1", patterns{"*.example.com"}
	b.ask(func(r *databasesv1.DatabaseRestore) {
		r.Spec = databasesv1.DatabaseRestoreSpec{Snapshot: "1a2b3c4d", Repository: &databasesv1.Repository{
			Destination: databasesv1.Destination{REST: &databasesv1.RESTDestination{URL: "https://evil.example.org:8000/x"}},
			Encryption:  databasesv1.Encryption{PasswordSecretRef: databasesv1.KeyReference{Name: "kept", Key: "p"}}},
			TargetRef: complete("").Spec.TargetRef, Auth: complete("").Spec.Auth}
	})
	b.follow()
	b.want("Unknown StoreNotAllowed: the store at evil.example.org:8000 is not allowed")
	if b.restoreJobs() > 0 {
		t.Error("a Job has the credentials")
	}
}
