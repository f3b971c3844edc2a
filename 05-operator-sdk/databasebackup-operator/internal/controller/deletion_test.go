package controller

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

func deleteFiles(x *backup) { x.Spec.DeletionPolicy = databasesv1.DeleteFiles }

// deletedFiles is the result of a good deletion.
var deletedFiles = &result{Verb: "delete", Succeeded: true, Reason: "DeleteSucceeded", Message: "3 snapshots"}

// gone reports whether the DatabaseBackup is gone.
func (b *fixture) gone() bool {
	err := b.Get(b.t.Context(), b.request().NamespacedName, &backup{})
	return apierrors.IsNotFound(err)
}

func (b *fixture) mustBeGone() {
	b.t.Helper()
	if !b.gone() {
		b.t.Error("it is still there")
	}
}

// deletesItsFiles ends the Job that deletes the backups. Afterwards the DatabaseBackup must be gone.
func (b *fixture) deletesItsFiles() {
	b.t.Helper()
	b.finish(b.job("orders-delete"), "")
	b.reconcile()
	b.mustBeGone()
}

// removed deletes the DatabaseBackup and lets the operator run.
func (b *fixture) removed() {
	b.t.Helper()
	b.must(b.Delete(b.t.Context(), b.backup()))
	b.reconcile()
}

// newDeletion returns a fixture whose DatabaseBackup was deleted, and whose files are to be deleted with it.
func newDeletion(t *testing.T) *fixture {
	t.Helper()
	b := newFixture(t, deleteFiles)
	b.reconcile()
	b.removed()
	return b
}

func TestDeleteTakesTheFilesFirst(t *testing.T) {
	b := newFixture(t, deleteFiles)
	b.at(0, 0)
	b.reconcile()
	if !slices.Equal(b.backup().Finalizers, []string{databasesv1.FilesFinalizer}) || b.writes[0] != "patch orders" {
		t.Errorf("the finalizer comes before all else: %v", b.writes)
	}
	b.removed()
	if got := b.jobs(); len(got) > 0 {
		t.Error("a run goes on while its backups are to be deleted:", got)
	}
	b.is("Ready: False Deleting")
	job := b.job("orders-delete")
	if args := job.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{"delete"}) {
		t.Error(args)
	}
	b.run(job, b.ended(1, "Error", &result{Verb: "delete", Reason: "VolumeFailed", Message: "input/output error"}))
	b.finish(job, batchv1.JobReasonBackoffLimitExceeded)
	b.reconcile()
	b.is("Ready: False DeleteFailed")
	b.mentions("Ready", "input/output error")
	b.must(b.Delete(t.Context(), job, client.PropagationPolicy("Background")))
	b.reconcile()
	if b.gone() {
		t.Fatal("it went without its backups")
	}
	job = b.job("orders-delete")
	b.run(job, b.ended(0, "Completed", deletedFiles))
	b.finish(job, "")
	b.reconcile()
	if !b.gone() {
		t.Error("its backups are gone, and it is there")
	}
}

// An image without pgbackup may succeed and do nothing: then the backups still exist.
func TestADeletionWithoutAResultIsNotTrusted(t *testing.T) {
	for name, message := range map[string]string{
		"nothing": "", "another verb": `{"verb":"backup","succeeded":true,"reason":"BackupSucceeded"}`} {
		t.Run(name, func(t *testing.T) {
			b := newDeletion(t)
			job := b.job("orders-delete")
			status := b.ended(0, "Completed", nil)
			end(&status).Message = message
			b.run(job, status)
			b.finish(job, "")
			b.reconcile()
			b.is("Ready: False DeleteFailed")
			b.must(b.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)))
			b.reconcile()
			b.is("Ready: False DeleteFailed")
		})
	}
}

// Another client may delete the pod before the operator reads it: then the success in the status of the Job counts.
func TestADeletionWhosePodIsGoneIsTrusted(t *testing.T) {
	b := newDeletion(t)
	b.deletesItsFiles()
}

// A pod of a Job that was stopped may still start, and would write to the repository again.
func TestDeleteWaitsForPodsOfRunsThatWereEnded(t *testing.T) {
	b, job := newRun(t, deleteFiles)
	b.run(job, corev1.PodStatus{Phase: corev1.PodRunning})
	b.removed()
	b.is("Ready: False Deleting")
	err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "orders-delete"}, &batchv1.Job{})
	if !apierrors.IsNotFound(err) {
		t.Fatal("the backups are deleted beside a run:", err)
	}
	b.must(b.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)))
	b.reconcile()
	b.job("orders-delete")
}

// When the volume is gone, no files can be deleted: the operator removes the finalizer, and an event reports it.
func TestDeleteGivesUpWithoutAVolume(t *testing.T) {
	for name, test := range map[string]struct {
		spec func(*backup)
		lose func(*fixture)
		says string
	}{
		"the claim is gone": {deleteFiles, func(b *fixture) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: b.meta("backups")}
			b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(claim), claim))
			claim.Finalizers = nil
			b.must(b.Update(b.t.Context(), claim))
			b.must(client.IgnoreNotFound(b.Delete(b.t.Context(), claim)))
		}, "PersistentVolumeClaim backups does not exist"},
		"the claim is going": {deleteFiles, func(b *fixture) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: b.meta("backups")}
			b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(claim), claim))
			claim.Finalizers = []string{"example.com/held"}
			b.must(b.Update(b.t.Context(), claim))
			b.must(b.Delete(b.t.Context(), claim))
		}, "PersistentVolumeClaim backups is being deleted"},
		"the spec names none": {func(x *backup) { x.Spec.Destination = nil }, func(*fixture) {},
			"spec.destination is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deleteFiles, test.spec)
			b.reconcile()
			test.lose(b)
			b.recorded()
			b.removed()
			if recorded := strings.Join(b.recorded(), "\n"); !b.gone() ||
				!strings.Contains(recorded, "Warning FilesAbandoned "+test.says) {
				t.Errorf("gone: %v, recorded %q", b.gone(), recorded)
			}
		})
	}
}

// In a terminating namespace no Job can be created, and the claim is deleted too: the DatabaseBackup must not block the
// namespace.
func TestDeleteDoesNotHoldANamespace(t *testing.T) {
	b := newFixture(t, deleteFiles)
	b.reconcile()
	b.must(b.WithWatch.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
	b.removed()
	if !b.gone() {
		t.Errorf("it holds its namespace: %+v", b.backup().Status.Conditions)
	}
}

func TestRetainAfterAllGivesTheFilesUp(t *testing.T) {
	b := newDeletion(t)
	if b.gone() {
		t.Fatal("it went without its backups")
	}
	b.edit(func(x *backup) { x.Spec.DeletionPolicy = databasesv1.RetainFiles })
	b.reconcile()
	b.mustBeGone()
}

func TestAPolicyThatChangesChangesTheFinalizer(t *testing.T) {
	b := newFixture(t, deleteFiles)
	b.reconcile()
	b.edit(func(x *backup) {
		x.Spec.DeletionPolicy = databasesv1.RetainFiles
		x.Finalizers = append(x.Finalizers, "example.com/other")
	})
	b.reconcile()
	if got := b.backup().Finalizers; !slices.Equal(got, []string{"example.com/other"}) {
		t.Error(got)
	}
	b.edit(func(x *backup) { x.Finalizers = nil })
}

// A store outside of the cluster may be out of reach for long: that is reported, and the user can let the backups go.
func TestADeletionFromAStoreThatIsOutOfReachIsReported(t *testing.T) {
	b := newFixture(t, deleteFiles, func(x *backup) {
		x.Spec.Destination = &databasesv1.Destination{S3: &databasesv1.S3Destination{Endpoint: "https://s3.example.com",
			Bucket: "company", CredentialsSecretRef: databasesv1.SecretReference{Name: "store"}}}
	})
	b.reconcile()
	b.removed()
	b.is("Ready: False Deleting")
	job := b.job("orders-delete")
	b.run(job, b.ended(1, "Error", &result{Verb: verbDelete, Reason: "RepositoryUnreachable", Message: "no answer"}))
	b.finish(job, batchv1.JobReasonBackoffLimitExceeded)
	b.reconcile()
	b.is("Ready: False DeleteFailed")
	b.mentions("Ready", "no answer", "set spec.deletionPolicy to Retain")
	b.edit(func(x *backup) { x.Spec.DeletionPolicy = databasesv1.RetainFiles })
	b.reconcile()
	b.mustBeGone()
}
