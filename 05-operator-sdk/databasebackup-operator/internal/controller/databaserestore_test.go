package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			Restored: &databasesv1.Restored{Database: "orders", Tables: 2, Rows: 10, Replaced: true}}))
	b.finish(job, "")
	b.follow()
	b.want(`True RestoreSucceeded: 2 tables; role "guest" does not exist`)
	s := b.restore().Status
	if s.InProgress || s.CompletionTime == nil ||
		*s.Restored != (databasesv1.Restored{Database: "orders", Tables: 2, Rows: 10, Replaced: true}) {
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

// A user who creates a DatabaseBackup of that name months later does not expect that a restore begins and replaces a
// database.
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

// A restore that finds a damaged backup cannot record that on the volume. The DatabaseBackup reports it at once, and
// its next run checks the backup again.
func TestABackupThatARestoreFoundDamagedIsBroken(t *testing.T) {
	b, first := newRun(t)
	b.succeed()
	b.reconcile()
	state := func() string {
		b.t.Helper()
		b.reconcile()
		return b.backup().Status.Backups[0].State
	}
	if got := state(); got != stateGood {
		t.Fatalf("the backup is %s", got)
	}
	b.ask(func(r *databasesv1.DatabaseRestore) { r.Spec.BackupName = first.Name })
	b.follow()
	job := b.job("monday-restore")
	b.run(job, b.ended(1, "Error", &result{Verb: "restore", Reason: "ChecksumMismatch", Message: "another checksum"}))
	b.finish(job, "BackoffLimitExceeded")
	b.follow()
	b.want("False ChecksumMismatch")
	if got := state(); got != stateBroken || newestGood(b.backup()) != nil {
		t.Errorf("after the restore the backup is %s", got)
	}
	b.at(5, 0)
	b.reconcile()
	second := b.job(b.backup().Status.ActiveJob)
	if got := environmentOf(second.Spec.Template.Spec.Containers[0])["BACKUP_CHECK_AGAIN"]; got != first.Name {
		t.Errorf("the next run checks %q again", got)
	}
	b.must(b.Delete(t.Context(), b.restore()))
	b.succeed() // its list of the volume has the state of the first backup
	b.reconcile()
	for _, backup := range b.backup().Status.Backups {
		if backup.Name == first.Name && backup.State != stateBroken {
			t.Errorf("without a list the state is %s", backup.State)
		}
	}
}

func TestTheLastRestoreDecidesWhetherABackupIsDamaged(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	ended := func(minute int, backup, reason string) databasesv1.DatabaseRestore {
		r := databasesv1.DatabaseRestore{}
		r.Spec.DatabaseBackupName, r.Spec.BackupName = orders, backup
		r.Status.CompletionTime = &metav1.Time{Time: time.Unix(int64(60*minute), 0)}
		status := metav1.ConditionFalse
		if reason == "RestoreSucceeded" {
			status = metav1.ConditionTrue
		}
		r.Status.Conditions = []metav1.Condition{{Type: databasesv1.ConditionSucceeded, Status: status, Reason: reason}}
		return r
	}
	ofOther := ended(3, "of-another-owner", "ChecksumMismatch")
	ofOther.Spec.BackupOwnerUID = "0ff1"
	other := ended(3, "of-another-backup", "ChecksumMismatch")
	other.Spec.DatabaseBackupName = "invoices"
	got := damagedBackups(b, []databasesv1.DatabaseRestore{
		ended(5, "repaired", "RestoreSucceeded"), ended(2, "repaired", "ChecksumMismatch"),
		ended(2, "decayed", "RestoreSucceeded"), ended(4, "decayed", "ArchiveUnreadable"),
		ended(6, "decayed", "TargetNotEmpty"), ended(2, "refused", "RestoreFailed"), ofOther, other})
	if diff := cmp.Diff([]string{"decayed"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
