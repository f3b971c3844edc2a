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

// gone reports whether the DatabaseBackup is.
func (b *bench) gone() bool {
	err := b.Get(b.t.Context(), b.request().NamespacedName, &backup{})
	return apierrors.IsNotFound(err)
}

// removed deletes the DatabaseBackup and lets the operator run.
func (b *bench) removed() {
	b.t.Helper()
	b.must(b.Delete(b.t.Context(), b.backup()))
	b.reconcile()
}

func TestRetainLeavesTheFiles(t *testing.T) {
	b := newBench(t)
	b.reconcile()
	if len(b.backup().Finalizers) > 0 {
		t.Error("a finalizer")
	}
	b.removed()
	if !b.gone() {
		t.Error("it is still there")
	}
}

func TestDeleteTakesTheFilesFirst(t *testing.T) {
	b := newBench(t, deleteFiles)
	b.at(0, 0)
	b.reconcile()
	if !slices.Equal(b.backup().Finalizers, []string{databasesv1.FilesFinalizer}) || b.writes[0] != "patch orders" {
		t.Errorf("the finalizer comes before all else: %v", b.writes)
	}
	b.removed()
	if got := b.jobs(); len(got) > 0 {
		t.Error("a run goes on while its files shall go:", got)
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
	if m := condition(b.backup().Status.Conditions, "Ready").Message; !strings.Contains(m, "input/output error") {
		t.Error(m)
	}
	b.must(b.Delete(t.Context(), job, client.PropagationPolicy("Background")))
	b.reconcile()
	if b.gone() {
		t.Fatal("it went without its files")
	}
	b.finish(b.job("orders-delete"), "")
	b.reconcile()
	if !b.gone() {
		t.Error("its files are gone, and it is there")
	}
}

// When the volume is gone there is nothing to delete: the finalizer is given up, and an event says so.
func TestDeleteGivesUpWithoutAVolume(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*bench)
		says string
	}{
		"the claim is gone": {func(b *bench) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: b.meta("backups")}
			b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(claim), claim))
			claim.Finalizers = nil
			b.must(b.Update(b.t.Context(), claim))
			b.must(client.IgnoreNotFound(b.Delete(b.t.Context(), claim)))
		}, "PersistentVolumeClaim backups is gone"},
		"the claim is going": {func(b *bench) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: b.meta("backups")}
			b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(claim), claim))
			claim.Finalizers = []string{"example.com/held"}
			b.must(b.Update(b.t.Context(), claim))
			b.must(b.Delete(b.t.Context(), claim))
		}, "PersistentVolumeClaim backups is being deleted"},
		"the spec names none": {func(b *bench) { b.edit(func(x *backup) { x.Spec.Destination = nil }) }, "spec.destination is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, deleteFiles)
			b.reconcile()
			test.lose(b)
			b.told()
			b.removed()
			if told := strings.Join(b.told(), "\n"); !b.gone() || !strings.Contains(told, "Warning FilesAbandoned "+test.says) {
				t.Errorf("gone: %v, told %q", b.gone(), told)
			}
		})
	}
}

// In a namespace that goes no Job can be made, and the claim goes too: the DatabaseBackup must not hold it.
func TestDeleteDoesNotHoldANamespace(t *testing.T) {
	b := newBench(t, deleteFiles)
	b.reconcile()
	b.must(b.WithWatch.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
	b.removed()
	if !b.gone() {
		t.Errorf("it holds its namespace: %+v", b.backup().Status.Conditions)
	}
}

func TestRetainAfterAllGivesTheFilesUp(t *testing.T) {
	b := newBench(t, deleteFiles)
	b.reconcile()
	b.removed()
	if b.gone() {
		t.Fatal("it went without its files")
	}
	b.edit(func(x *backup) { x.Spec.DeletionPolicy = databasesv1.RetainFiles })
	b.reconcile()
	if !b.gone() {
		t.Error("it is still there")
	}
}

func TestAPolicyThatChangesChangesTheFinalizer(t *testing.T) {
	b := newBench(t, deleteFiles)
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
