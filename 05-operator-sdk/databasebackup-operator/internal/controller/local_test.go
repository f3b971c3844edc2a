package controller

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// newLocal returns a loop on a local cluster, where the scheduler, the Job controller and the garbage collector run. In
// a copy of this folder outside of the workshop, the test is skipped. No controller provides volumes there, and pods
// are simulated: pods of Jobs succeed at once, and leave no message.
func newLocal(t *testing.T, change ...func(*backup)) *loop {
	t.Helper()
	crds, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "bases", "*.yaml"))
	if err != nil || len(crds) != 2 {
		t.Fatal(crds, err)
	}
	local, err := testenv.StartLocal(crds...)
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	envtest := config
	t.Cleanup(func() {
		config = envtest
		if err := local.Stop(); err != nil {
			t.Error(err)
		}
	})
	config = local.Config
	l := newLoop(t, change...)
	l.SetDefaultEventuallyTimeout(60 * time.Second)
	return l
}

// volume provides the volume for which the claim waits.
func (l *loop) volume() {
	l.t.Helper()
	l.must(l.Create(l.t.Context(),
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "standard", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: l.namespace, Name: "backups"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/backups"}},
		}}))
}

// trigger requests a run in the operator's next minute, and waits for its end.
func (l *loop) trigger(value string) {
	l.t.Helper()
	l.ahead.by.Add(int64(time.Minute))
	l.edit(func(x *backup) { x.Annotations = map[string]string{databasesv1.TriggerAnnotation: value} })
	l.Eventually(func() string {
		s := l.backup().Status
		return fmt.Sprintf("%s, active: %s", s.LastHandledTrigger, s.ActiveJob)
	}).Should(gomega.Equal(value + ", active: "))
}

// left returns the remaining Jobs and pods of the operator, as "ended" or "pod of" and a Job's name.
func (l *loop) left() (all []string) {
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.PodList{}} {
		l.Expect(l.List(context.Background(), list, client.InNamespace(l.namespace),
			client.MatchingLabels{labelManager: manager})).To(gomega.Succeed())
		l.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			switch o := o.(type) {
			case *batchv1.Job:
				all = append(all, "Job "+o.Name)
			case *corev1.Pod:
				all = append(all, "pod of "+o.Labels[batchv1.JobNameLabel])
			}
			return nil
		})).To(gomega.Succeed())
	}
	slices.Sort(all)
	return all
}

// succeeded returns the number of successful Jobs.
func (l *loop) succeeded() (n int) {
	list := &batchv1.JobList{}
	l.Expect(l.List(context.Background(), list, client.InNamespace(l.namespace))).To(gomega.Succeed())
	for i := range list.Items {
		if end := finished(&list.Items[i]); end != nil && end.Type == batchv1.JobComplete {
			n++
		}
	}
	return n
}

// One DatabaseBackup from a missing volume to its deletion, with the controllers of a real cluster.
func TestAWholeLifeAmongRealControllers(t *testing.T) {
	l := newLocal(t, func(x *backup) {
		x.Spec.Schedule, x.Spec.Immediate, x.Spec.ActiveDeadlineSeconds = "0 0 1 1 *", true, new(int64(20))
		x.Spec.SuccessfulJobsHistoryLimit, x.Spec.FailedJobsHistoryLimit = new(int32(2)), new(int32(1))
	})
	ready := func() string { return l.says("Ready") }
	l.Eventually(ready).Should(gomega.Equal("False Unschedulable"), "nobody provides the volume")
	began := time.Now()
	l.comesToSay("BackupSucceeded", "False DeadlineExceeded")
	said := condition(l.backup().Status.Conditions, "BackupSucceeded").Message
	if !strings.Contains(said, "took longer than 20 s: Pod") || !strings.Contains(said, "finds no node") {
		t.Error("it does not say why:", said)
	}
	t.Logf("the deadline was reported %s after the pod found no node: %s",
		time.Since(began).Round(100*time.Millisecond), said)
	l.Eventually(ready).Should(gomega.Equal("True Scheduled"))
	failed := l.backup().Status.LastJob

	l.volume()
	l.edit(func(x *backup) { x.Spec.ActiveDeadlineSeconds = new(int64(600)) })
	for _, value := range []string{"a", "b", "c", "d"} {
		l.trigger(value)
		// Simulated containers leave no termination message, and the condition reports that.
		l.Expect(l.says("BackupSucceeded")).To(gomega.Equal("Unknown ResultMissing"))
	}
	l.Eventually(l.left).Should(gomega.HaveLen(5),
		"a failed Job, whose pod the Job controller removed; two that succeeded, with their pods")
	l.Expect(l.left()).To(gomega.ContainElement("Job " + failed))
	l.Expect(l.succeeded()).To(gomega.Equal(2))

	l.must(l.Delete(t.Context(), l.backup()))
	l.Eventually(l.left).Should(gomega.BeEmpty(), "the garbage collector takes Jobs and pods along")
	l.remains()

	// The same name is used again at once, and now the files are deleted.
	requeueAfter := complete(l.namespace)
	requeueAfter.Spec.Schedule, requeueAfter.Spec.Immediate, requeueAfter.Spec.DeletionPolicy = "0 0 1 1 *", true,
		databasesv1.DeleteFiles
	l.must(l.Create(t.Context(), requeueAfter))
	l.comesToSay("BackupSucceeded", "Unknown ResultMissing")
	l.must(l.Delete(t.Context(), l.backup()))
	l.Eventually(ready).Should(gomega.Equal("False DeleteFailed"), "nobody says that the files are gone")
	l.edit(func(x *backup) { x.Spec.DeletionPolicy = databasesv1.RetainFiles })
	l.Eventually(l.gone).Should(gomega.BeTrue(), "who sets Retain gives the files up")
	l.Eventually(l.left).Should(gomega.BeEmpty())
	l.remains()
	l.Expect(l.requests()["POST jobs "]).To(gomega.Equal(7),
		"five backups, one after all was deleted, and one deletion of files")
	if denied := l.denials(); len(denied) > 0 {
		t.Error("denied:", denied)
	}
}

// remains checks that objects that the operator does not own still exist.
func (l *loop) remains() {
	l.t.Helper()
	for name, obj := range map[string]client.Object{
		"backups": &corev1.PersistentVolumeClaim{}, "db-rw": &corev1.Service{}, "db-0": &corev1.Pod{}} {
		l.Expect(l.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, obj)).To(gomega.Succeed())
		l.Expect(obj.GetDeletionTimestamp().IsZero()).To(gomega.BeTrue())
	}
}
