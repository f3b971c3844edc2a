package controller

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// quotaMessage is the message of the API server.
const quotaMessage = "exceeded quota: no-pods, requested: pods=1, used: pods=0, limited: pods=0"

// podQuota prevents every client from creating a pod.
func (b *fixture) podQuota() *corev1.ResourceQuota {
	b.t.Helper()
	return b.none("no-pods", corev1.ResourcePods)
}

// none creates a quota of 0 for a resource. It returns when the API server enforces the quota: its admission reads
// quotas from a cache.
func (b *fixture) none(name string, what corev1.ResourceName) *corev1.ResourceQuota {
	b.t.Helper()
	none := corev1.ResourceList{what: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: b.meta(name), Spec: corev1.ResourceQuotaSpec{Hard: none}}
	b.must(b.WithWatch.Create(b.t.Context(), quota))
	b.must(retry.RetryOnConflict(patient, func() error { // in the local environment the quota controller writes too
		b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(quota), quota))
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
		return b.WithWatch.Status().Update(b.t.Context(), quota)
	}))
	gomega.NewWithT(b.t).Eventually(b.tried, "30s", "10ms").
		Should(gomega.MatchError(gomega.ContainSubstring("exceeded quota")))
	return quota
}

// lift deletes a quota, and returns when the API server no longer refuses requests.
func (b *fixture) lift(quota *corev1.ResourceQuota) {
	b.t.Helper()
	b.must(b.Delete(b.t.Context(), quota))
	gomega.NewWithT(b.t).Eventually(b.tried, "30s", "10ms").Should(gomega.Succeed())
}

// tried creates a Secret, a Job and a pod as a dry run, and returns the API server's errors.
func (b *fixture) tried() error {
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "example.com/pgbackup:v1"}}}
	return errors.Join(
		b.WithWatch.Create(b.t.Context(), &corev1.Secret{ObjectMeta: b.meta("tried")}, client.DryRunAll),
		b.WithWatch.Create(b.t.Context(), &corev1.Pod{ObjectMeta: b.meta("tried"), Spec: spec}, client.DryRunAll),
		b.WithWatch.Create(b.t.Context(), &batchv1.Job{ObjectMeta: b.meta("tried"),
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}, client.DryRunAll))
}

// failedCreate is what the Job controller does when the API server refuses a pod: it records an event about the Job. The
// message is that of the API server.
func (b *fixture) failedCreate(job *batchv1.Job) {
	b.t.Helper()
	pod := &corev1.Pod{ObjectMeta: b.meta(job.Name + "-x7k2p"), Spec: *job.Spec.Template.Spec.DeepCopy()}
	err := b.WithWatch.Create(b.t.Context(), pod)
	if err == nil {
		b.t.Fatal("the API server accepts the pod")
	}
	b.must(b.WithWatch.Create(b.t.Context(), &corev1.Event{ObjectMeta: b.meta(job.Name + ".1"),
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace,
			Name: job.Name, UID: job.UID},
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "Error creating: " + err.Error(),
		Source: corev1.EventSource{Component: "job-controller"}, LastTimestamp: metav1.Now()}))
	b.started(job)
}

// started sets the start of a Job as the Job controller does, so long ago that its pod is overdue.
func (b *fixture) started(job *batchv1.Job) {
	b.t.Helper()
	job.Status.StartTime = &metav1.Time{Time: b.clock.Now().Add(-podGrace)}
	b.must(b.WithWatch.Status().Update(b.t.Context(), job))
}

// A quota refuses the pods of a Job: the condition has the quota's message, in a backup, a restore and a deletion. The
// end of the refusal is in TestWatchesEnqueueWhatWaitsAndThePermissionsSuffice.
func TestAPodThatAQuotaRefusesIsReportedWithItsMessage(t *testing.T) {
	t.Run("a backup, until its deadline", func(t *testing.T) {
		b, job := newRun(t)
		b.podQuota()
		b.failedCreate(job)
		b.reconcile()
		b.finish(job, batchv1.JobReasonDeadlineExceeded)
		b.reconcile()
		b.is("BackupSucceeded: False DeadlineExceeded")
		b.mentions("BackupSucceeded", quotaMessage)
	})
	t.Run("a restore", func(t *testing.T) {
		b := newFixture(t)
		b.ask()
		b.follow()
		b.podQuota()
		b.failedCreate(b.job("monday-restore"))
		b.retriesSoon(b.restorer.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key()}))
		b.want("Unknown PodRejected")
		if got := b.outcome(); !strings.Contains(got, quotaMessage) {
			t.Error(got)
		}
	})
	t.Run("a deletion", func(t *testing.T) {
		b := newDeletion(t)
		b.podQuota()
		b.failedCreate(b.job("orders-delete"))
		b.retriesSoon(b.operator.Reconcile(t.Context(), b.request()))
		b.is("Ready: False PodRejected")
	})
}

// useLocal gives the test a local cluster, where the scheduler, the Job controller, the namespace controller and the
// garbage collector run. In a copy of this folder outside of the workshop, the test is skipped. No controller provides
// volumes there, and pods are simulated: pods of Jobs succeed at once, and leave no message.
func useLocal(t *testing.T, crds string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	local, err := testenv.StartLocal(files...)
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	must(t, err)
	envtest := config
	t.Cleanup(func() {
		config = envtest
		if err := local.Stop(); err != nil {
			t.Error(err)
		}
	})
	config = local.Config
}

// newLocal returns a loop on a local cluster.
func newLocal(t *testing.T, change ...func(*backup)) *loop {
	t.Helper()
	useLocal(t, shippedCRDs)
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

// The Job controller of a real cluster tries again by itself, and soon.
func TestAPodThatAQuotaRefusedIsCreatedSoonAfterTheQuotaIsGone(t *testing.T) {
	l := newLocal(t, func(x *backup) { x.Spec.Schedule = "0 0 1 1 *" })
	l.volume()
	l.comesToSay("Ready", "True Scheduled")
	quota := l.podQuota()
	l.edit(asks("now"))
	began := time.Now()
	l.Eventually(func() string {
		return condition(l.backup().Status.Conditions, "Ready").Message
	}).Should(gomega.ContainSubstring("exceeded quota: no-pods"))
	l.Expect(l.says("Ready")).To(gomega.Equal("False PodRejected"))
	t.Logf("the quota was reported %s after the trigger", time.Since(began).Round(time.Second))
	l.lift(quota)
	began = time.Now()
	l.Eventually(func() string { return l.says("BackupSucceeded") }, "90s").
		Should(gomega.Equal("Unknown ResultMissing"), "the simulated pod ran")
	t.Logf("the pod ran %s after the quota was gone", time.Since(began).Round(time.Second))
	l.Expect(l.says("Ready")).To(gomega.Equal("True Scheduled"))
}

// No Job, and so no password, is sent to a target that does not exist.
func TestARestoreWaitsForItsTarget(t *testing.T) {
	external := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "evil.example.com"}
	for name, test := range map[string]struct {
		target  databasesv1.TargetReference
		service corev1.ServiceSpec // of the Service "other", when it is set
		says    string
	}{
		"no Service": {databasesv1.TargetReference{Name: "db", ServiceName: "other"}, corev1.ServiceSpec{},
			"Service other does not exist"},
		"no StatefulSet": {databasesv1.TargetReference{Name: "other", ServiceName: "db-rw"}, corev1.ServiceSpec{},
			"StatefulSet other does not exist"},
		"a Service elsewhere": {databasesv1.TargetReference{Name: "db", ServiceName: "other"}, external,
			"Service other is of type ExternalName"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			if test.service.Type != "" {
				b.must(b.Create(t.Context(), &corev1.Service{ObjectMeta: b.meta("other"), Spec: test.service}))
			}
			b.ask(func(r *databasesv1.DatabaseRestore) { r.Spec.TargetRef = &test.target })
			b.follow()
			b.want("Unknown TargetNotFound: " + test.says)
			if n := b.restoreJobs(); n > 0 {
				t.Errorf("%d Jobs have the password", n)
			}
			b.clock.SetTime(b.restore().CreationTimestamp.Add(waitLimit))
			b.follow()
			b.want("False TargetNotFound: " + test.says)
		})
	}
	t.Run("a backup to an ExternalName", func(t *testing.T) {
		b := newFixture(t, func(x *backup) { x.Spec.TargetRef.ServiceName = "other" })
		b.must(b.Create(t.Context(), &corev1.Service{ObjectMeta: b.meta("other"), Spec: external}))
		b.at(5, 0)
		b.reconcile()
		b.is("Ready: False TargetNotFound")
		if len(b.jobs()) > 0 {
			t.Error("a Job has the password")
		}
	})
}

func (b *fixture) restoreJobs() int {
	b.t.Helper()
	list := &batchv1.JobList{}
	b.must(b.List(b.t.Context(), list, client.InNamespace(b.namespace),
		client.MatchingLabels{labelComponent: componentRestore}))
	return len(list.Items)
}

// After an error the operator tries again at most 30 s later.
func TestTheBackoffEndsAtThirtySeconds(t *testing.T) {
	limiter, request := backoff(), ctrl.Request{}
	first, last := limiter.When(request), time.Duration(0)
	for range 100 {
		last = limiter.When(request)
	}
	if got := fmt.Sprint(first, last); got != "5ms 30s" {
		t.Error(got)
	}
}
