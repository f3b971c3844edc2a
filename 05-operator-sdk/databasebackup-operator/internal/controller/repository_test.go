package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// passwords returns the Secrets of the namespace.
func (b *fixture) passwords() []corev1.Secret {
	b.t.Helper()
	list := &corev1.SecretList{}
	b.must(b.List(b.t.Context(), list, client.InNamespace(b.namespace)))
	return list.Items
}

// Without spec.encryption the operator creates a Secret once. It survives its DatabaseBackup, as the backups do.
func TestThePasswordOfARepositoryIsCreatedOnce(t *testing.T) {
	b := newFixture(t)
	b.reconcile()
	if name := b.backup().Status.EncryptionSecretName; name != "orders-backup-encryption" || len(b.passwords()) > 0 {
		t.Errorf("before the first run status names %q, and there are %d Secrets", name, len(b.passwords()))
	}
	b.runAt(0, 0)
	all := b.passwords()
	if len(all) != 1 {
		t.Fatalf("%d Secrets", len(all))
	}
	first := all[0]
	if first.Name != "orders-backup-encryption" || len(first.Data[passwordKey]) < 26 || first.Immutable == nil ||
		!*first.Immutable || len(first.OwnerReferences) > 0 {
		t.Errorf("%+v", first)
	}
	b.runAt(5, 0)
	b.must(b.Delete(t.Context(), b.backup()))
	b.reconcile()
	b.must(b.Create(t.Context(), complete(b.namespace)))
	b.runAt(10, 0)
	if later := b.passwords(); len(later) != 1 || later[0].ResourceVersion != first.ResourceVersion {
		t.Errorf("the Secret was changed: %+v", later)
	}
}

// A user who brings a password, or loses the password of an existing repository, gets no other one: another password
// does not open the repository.
func TestNoSecondPasswordIsCreated(t *testing.T) {
	t.Run("the user has a Secret", func(t *testing.T) {
		b := newFixture(t, func(x *backup) {
			x.Spec.Encryption = &databasesv1.Encryption{
				PasswordSecretRef: databasesv1.KeyReference{Name: "mine", Key: "secret"}}
		})
		b.runAt(0, 0)
		job := b.job(b.backup().Status.LastJob)
		i := slices.IndexFunc(job.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "password" })
		if source := job.Spec.Template.Spec.Volumes[i].Secret; source.SecretName != "mine" || source.Items[0].Key != "secret" {
			t.Errorf("%+v", source)
		}
		if name := b.backup().Status.EncryptionSecretName; name != "" || len(b.passwords()) > 0 {
			t.Errorf("status names %q, and there are %d Secrets", name, len(b.passwords()))
		}
	})
	t.Run("the Secret is lost", func(t *testing.T) {
		b := newFixture(t)
		b.runAt(0, 0)
		b.must(b.Delete(t.Context(), &b.passwords()[0]))
		b.runAt(5, 0)
		if n := len(b.passwords()); n > 0 {
			t.Error("another password was created for a repository that has one")
		}
	})
}

// A quota refuses the Secret: that is reported like a Job that is refused.
func TestAPasswordThatIsRefusedIsReported(t *testing.T) {
	b := newFixture(t)
	quota := b.none("no-secrets", "count/secrets")
	b.at(0, 0)
	b.refused()
	b.mentions("Ready", "Secret orders-backup-encryption", "exceeded quota")
	if len(b.jobs()) > 0 {
		t.Error("a Job without a password")
	}
	b.lift(quota)
	b.reconcile()
	b.is("Ready: True Scheduled")
}

// restores is the verification mode in which a pod has a container that restores the dump.
func restores(x *backup) { x.Spec.Verification.Mode = databasesv1.VerifyRestore }

// Whether there is a backup, and whether it could be restored, are two facts.
func TestWhatVerifySaysIsNotWhetherThereIsABackup(t *testing.T) {
	for name, test := range map[string]struct {
		verify              *result
		code                int32
		reason              string
		succeeded, verified string
	}{
		"it passed": {&result{Verb: verbVerify, Succeeded: true, Reason: "VerificationPassed"}, 0, "Completed",
			"True BackupSucceeded", "True RestoreVerified"},
		"the scratch server lacks something": {&result{Verb: verbVerify, Reason: "ScratchRestoreFailed", Message: "why"},
			exitNotVerified, "Error", "True BackupSucceeded", "Unknown ScratchRestoreFailed"},
		"the query": {&result{Verb: verbVerify, Reason: "QueryFailed", Message: "why"}, exitNotVerified, "Error",
			"True BackupSucceeded", "Unknown QueryFailed"},
		"the dump": {&result{Verb: verbVerify, Reason: "ArchiveUnreadable", Message: "why"}, exitFinal, "Error",
			"True BackupSucceeded", "False ArchiveUnreadable"},
		"no memory": {nil, 137, "OOMKilled", "True BackupSucceeded", "Unknown OutOfMemory"},
	} {
		t.Run(name, func(t *testing.T) {
			b, job := newRun(t, restores)
			results := b.taken(job.Name)
			results[0].Backup.Verified = nil
			status := b.ended(test.code, test.reason, results[0], test.verify)
			status.ContainerStatuses[1].Name = verbVerify
			reason := batchJobFailed
			if test.code == 0 {
				status = b.ended(0, test.reason, results[0], test.verify, results[1])
				reason = ""
			}
			b.run(job, status)
			b.finish(job, reason)
			b.recorded()
			b.reconcile()
			b.is("BackupSucceeded: "+test.succeeded, "RestoreVerified: "+test.verified)
			s := b.backup().Status
			want := databasesv1.VerifyNone
			if test.code == 0 {
				want = databasesv1.VerifyRestore
			}
			if s.Backups[0].Verified != want || (s.LastVerifiedTime != nil) != (test.code == 0) || s.LastBackupTime == nil {
				t.Errorf("%+v", s)
			}
			if events := b.recorded(); (len(events) > 1) != (test.code != 0) {
				t.Errorf("recorded %q", events)
			}
		})
	}
}

// batchJobFailed is the reason of a Job that another pod would not help.
const batchJobFailed = "PodFailurePolicy"

// A run that did not finish is no success: the repository may be damaged. The backup that it took is listed.
func TestARunThatDidNotFinishIsReported(t *testing.T) {
	b, job := newRun(t)
	results := b.taken(job.Name)
	results[1] = &result{Verb: verbFinish, Reason: "RepositoryDamaged", Message: "the repository is damaged"}
	b.run(job, b.ended(exitFinal, "Error", results...))
	b.finish(job, batchJobFailed)
	b.reconcile()
	b.is("BackupSucceeded: False RepositoryDamaged")
	b.mentions("BackupSucceeded", "the backup was taken, but the run did not finish: the repository is damaged")
	if s := b.backup().Status; len(s.Backups) != 1 || s.LastBackupTime != nil {
		t.Errorf("%+v", s)
	}
}

// An earlier pod took the backup, and a later one did not reach the store: what the earlier one did remains.
func TestWhatAnEarlierPodDidCounts(t *testing.T) {
	b, job := newRun(t, restores)
	verify := &result{Verb: verbVerify, Reason: "ScratchFailed", Message: "no space"}
	b.run(job, b.ended(1, "Error", b.taken(job.Name)[0], verify))
	b.run(job, b.ended(1, "Error", &result{Verb: verbBackup, Reason: "RepositoryUnreachable", Message: "no answer"}))
	b.finish(job, "BackoffLimitExceeded")
	b.reconcile()
	b.is("BackupSucceeded: True BackupSucceeded", "RestoreVerified: Unknown ScratchFailed")
}

// A Job that a user deletes leaves a pod that takes a while to end. The next pod has its host name, and would take its
// lock in the repository for the lock of a dead process.
func TestTheNextRunWaitsForThePodOfAnEarlierRun(t *testing.T) {
	b, job := newRun(t)
	b.run(job, corev1.PodStatus{Phase: corev1.PodRunning})
	b.must(b.Delete(t.Context(), job, client.PropagationPolicy("Background")))
	b.reconcile()
	b.at(5, 0)
	for range 3 {
		b.retriesSoon(b.operator.Reconcile(t.Context(), b.request()))
	}
	b.is("Ready: False EarlierPodRuns")
	if got := b.jobs(); slices.Contains(got, 5) {
		t.Error("two pods use the repository")
	}
	b.losePods()
	b.reconcile()
	b.is("Ready: True Scheduled")
	if got := b.jobs(); !slices.Contains(got, 5) {
		t.Error(got)
	}
}
