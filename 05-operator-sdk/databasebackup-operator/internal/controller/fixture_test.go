package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// errCrash is the error of a write at which the operator crashes, or whose response is lost.
var errCrash = errors.New("crashed")

// A fixture has one DatabaseBackup, its target and its claim in a namespace of a real API server, and the operator. The
// operator runs only when the test calls it, and uses the test's clock. Its client counts its writes.
type fixture struct {
	t *testing.T
	client.WithWatch
	namespace string
	clock     *clocktesting.FakePassiveClock
	events    *events.FakeRecorder
	operator  *DatabaseBackupReconciler
	restorer  *DatabaseRestoreReconciler

	writes []string // since the last reset
	// crashAt is the number of the write at which the operator crashes, -1 for never. With before, the write is not
	// done.
	crashAt int
	before  bool
	// noJobs: the operator's cache has no Job yet.
	noJobs bool
}

const orders = "orders"

func newFixture(t *testing.T, change ...func(*databasesv1.DatabaseBackup)) *fixture {
	t.Helper()
	b := &fixture{t: t, crashAt: -1, events: events.NewFakeRecorder(10000)}
	b.WithWatch, b.namespace = newClient(t)
	b.target()
	backup := complete(b.namespace)
	for _, f := range change {
		f(backup)
	}
	b.must(b.Create(t.Context(), backup))
	t.Cleanup(b.leave)
	b.clock = clocktesting.NewFakePassiveClock(backup.CreationTimestamp.Time)
	b.operator = b.replica()
	b.restorer = &DatabaseRestoreReconciler{Base: b.operator.Base}
	return b
}

// leave removes the objects that another test's operator would reconcile.
func (b *fixture) leave() {
	ctx := context.Background()
	backups, restores := &databasesv1.DatabaseBackupList{}, &databasesv1.DatabaseRestoreList{}
	b.must(errors.Join(b.List(ctx, backups, client.InNamespace(b.namespace)),
		b.List(ctx, restores, client.InNamespace(b.namespace))))
	for i := range backups.Items {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		b.must(client.IgnoreNotFound(b.Patch(ctx, &backups.Items[i], free)))
		b.must(client.IgnoreNotFound(b.Delete(ctx, &backups.Items[i])))
	}
	for i := range restores.Items {
		b.must(client.IgnoreNotFound(b.Delete(ctx, &restores.Items[i])))
	}
}

// complete returns a DatabaseBackup with all fields that a run needs.
func complete(namespace string) *databasesv1.DatabaseBackup {
	return &databasesv1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: orders},
		Spec: databasesv1.DatabaseBackupSpec{
			DatabaseName: `o'brien "x" $(HOME)`, Schedule: "*/5 * * * *", BackupPath: "/backups/orders",
			Image:     "example.com/pgbackup:v1",
			TargetRef: &databasesv1.TargetReference{Name: "db", ServiceName: "db-rw", Port: 5433},
			Auth: &databasesv1.Auth{UsernameSecretRef: &databasesv1.KeyReference{Name: "credentials", Key: "user"},
				PasswordSecretRef: &databasesv1.KeyReference{Name: "credentials", Key: "password"}},
			Destination: &databasesv1.Destination{PersistentVolumeClaim: &databasesv1.ClaimReference{ClaimName: "backups"}},
		},
	}
}

// replica is another operator, on the same cluster.
func (b *fixture) replica() *DatabaseBackupReconciler {
	return &DatabaseBackupReconciler{Metrics: NewMetrics(b.WithWatch, b.clock), Base: Base{
		Client: b.wired(), Live: b.WithWatch, Events: b.events, Clock: b.clock, Allowed: Allowed{Images: patterns{"example.com/*"}}}}
}

// wired returns a client that counts writes, and crashes at the write that the test chose.
func (b *fixture) wired() client.Client {
	write := func(what string, obj client.Object, do func() error) error {
		n := len(b.writes)
		b.writes = append(b.writes, what+" "+obj.GetName())
		if b.crashAt >= 0 && n > b.crashAt {
			return errCrash // nothing works after a crash
		}
		if n != b.crashAt {
			return do()
		}
		if b.before {
			return errCrash
		}
		return errors.Join(do(), errCrash)
	}
	return interceptor.NewClient(b.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if _, jobs := list.(*batchv1.JobList); jobs && b.noJobs {
				return nil
			}
			return c.List(ctx, list, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return write("create", obj, func() error { return c.Create(ctx, obj, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return write("delete", obj, func() error { return c.Delete(ctx, obj, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			o ...client.PatchOption) error {
			return write("patch", obj, func() error { return c.Patch(ctx, obj, p, o...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			return write(sub, obj, func() error { return c.SubResource(sub).Update(ctx, obj, o...) })
		},
	})
}

func (b *fixture) must(err error) {
	b.t.Helper()
	must(b.t, err)
}

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// target creates a StatefulSet with a ready pod, its Service and the claim.
func (b *fixture) target() {
	b.t.Helper()
	l := map[string]string{"app": "db"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "postgres"}}}}
	set := &appsv1.StatefulSet{ObjectMeta: b.meta("db"),
		Spec: appsv1.StatefulSetSpec{ServiceName: "db-rw", Selector: &metav1.LabelSelector{MatchLabels: l}, Template: pod}}
	b.must(b.Create(b.t.Context(), set))
	b.ready(1)
	b.must(b.Create(b.t.Context(), &corev1.Service{
		ObjectMeta: b.meta("db-rw"), Spec: corev1.ServiceSpec{Selector: l, Ports: []corev1.ServicePort{{Port: 5433}}}}))
	b.must(b.Create(b.t.Context(),
		&corev1.PersistentVolumeClaim{ObjectMeta: b.meta("backups"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi")}}}}))
}

func (b *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name}
}

// patient is the backoff of an update that conflicts with writes of real controllers.
var patient = wait.Backoff{Steps: 100, Duration: 20 * time.Millisecond}

// ready sets how many pods of the server are ready.
func (b *fixture) ready(n int32) {
	b.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: b.meta("db")}
	b.must(retry.RetryOnConflict(patient, func() error { // in the local environment the StatefulSet controller writes too
		b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(set), set))
		set.Status.Replicas, set.Status.ReadyReplicas = 2, n
		return b.Status().Update(b.t.Context(), set)
	}))
}

func (b *fixture) backup() *databasesv1.DatabaseBackup {
	b.t.Helper()
	backup := &databasesv1.DatabaseBackup{}
	b.must(b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: orders}, backup))
	return backup
}

// edit changes the DatabaseBackup as its user would.
func (b *fixture) edit(change func(*databasesv1.DatabaseBackup)) {
	b.t.Helper()
	b.must(retry.RetryOnConflict(patient, func() error { // a running operator may write the status meanwhile
		backup := b.backup()
		change(backup)
		return b.Update(b.t.Context(), backup)
	}))
}

func (b *fixture) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.namespace, Name: orders}}
}

// reconcile lets the operator run until it writes nothing more, and returns its RequeueAfter.
func (b *fixture) reconcile() time.Duration {
	b.t.Helper()
	for range 10 {
		before := len(b.writes)
		result, err := b.operator.Reconcile(b.t.Context(), b.request())
		b.must(err)
		if len(b.writes) == before {
			return result.RequeueAfter
		}
	}
	b.t.Fatalf("it does not come to rest: %v", b.writes)
	return 0
}

// at sets the clock to some minutes after the first slot, and some seconds.
func (b *fixture) at(minutes, seconds int) time.Time {
	now := b.first().Add(time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second)
	b.clock.SetTime(now)
	return now
}

// first is the first slot after the DatabaseBackup was created.
func (b *fixture) first() time.Time {
	return b.backup().CreationTimestamp.UTC().Truncate(5 * time.Minute).Add(5 * time.Minute)
}

// jobs returns the backup Jobs, as their minutes after the first slot.
func (b *fixture) jobs() (minutes []int) {
	b.t.Helper()
	list := &batchv1.JobList{}
	b.must(b.List(b.t.Context(), list, client.InNamespace(b.namespace),
		client.MatchingLabels{labelComponent: componentBackup}))
	for _, job := range list.Items {
		minutes = append(minutes, int(slotOf(orders, job.Name).Sub(b.first())/time.Minute))
	}
	slices.Sort(minutes)
	return minutes
}

func (b *fixture) job(name string) *batchv1.Job {
	b.t.Helper()
	job := &batchv1.Job{}
	b.must(b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, job))
	return job
}

// newRun returns a fixture whose first Job is active, and that Job.
func newRun(t *testing.T, change ...func(*backup)) (*fixture, *batchv1.Job) {
	t.Helper()
	b := newFixture(t, change...)
	b.at(0, 0)
	b.reconcile()
	return b, b.job(b.backup().Status.ActiveJob)
}

// run creates a pod of a Job as the Job controller does. The kubelet would write status.
func (b *fixture) run(job *batchv1.Job, status corev1.PodStatus) {
	b.t.Helper()
	spec, names := job.Spec.Template.Spec.DeepCopy(), containersOf(job)
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		s.Name = cmp.Or(s.Name, names[0])
	}
	isInit := func(s corev1.ContainerStatus) bool { return s.Name != names[len(names)-1] }
	for _, s := range status.ContainerStatuses {
		if isInit(s) {
			status.InitContainerStatuses = append(status.InitContainerStatuses, s)
		}
	}
	status.ContainerStatuses = slices.DeleteFunc(slices.Clone(status.ContainerStatuses), isInit)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, GenerateName: job.Name + "-", Labels: job.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: *spec}
	b.must(b.Create(b.t.Context(), pod))
	pod.Status = status
	b.must(b.Status().Update(b.t.Context(), pod))
}

// ended is the status of a pod whose containers have ended with these results, nil for none. The last container ended
// with a code and a reason, the others with 0. The first container of the Job has no result, when there is none.
func (b *fixture) ended(code int32, reason string, results ...*result) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodSucceeded}
	if code != 0 {
		status.Phase = corev1.PodFailed
	}
	for i, r := range results {
		name, message, end := "", "", &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: b.clock.Now()}}
		if r != nil {
			encoded, err := json.Marshal(r)
			b.must(err)
			name, message = r.Verb, string(encoded)
		}
		if i == len(results)-1 {
			end.ExitCode, end.Reason = code, reason
		}
		end.Message = message
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: "x", State: corev1.ContainerState{Terminated: end}})
	}
	return status
}

// finish ends a Job as the Job controller does. With a reason, the Job has failed.
func (b *fixture) finish(job *batchv1.Job, reason string) {
	b.t.Helper()
	now := metav1.Time{Time: b.clock.Now().Truncate(time.Second)}
	if job.Status.StartTime == nil {
		job.Status.StartTime = &metav1.Time{Time: now.Add(-40 * time.Second)}
	}
	b.must(b.Status().Update(b.t.Context(), job))
	met, end := batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	if reason != "" {
		met, end = batchv1.JobFailureTarget, batchv1.JobFailed
		job.Status.Failed = 1
	} else {
		job.Status.Succeeded = 1
	}
	for _, kind := range []batchv1.JobConditionType{met, end} {
		if kind == batchv1.JobComplete {
			job.Status.CompletionTime = &now
		}
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue,
			Reason: reason, Message: "as the Job controller says", LastProbeTime: now, LastTransitionTime: now})
		b.must(b.Status().Update(b.t.Context(), job))
	}
}

// succeed ends the active Job successfully, with a backup on the volume.
func (b *fixture) succeed() {
	b.t.Helper()
	job := b.job(b.backup().Status.ActiveJob)
	b.run(job, b.ended(0, "Completed", b.taken(job.Name)...))
	b.finish(job, "")
}

// completes lets the active Job succeed, and the operator see that.
func (b *fixture) completes() {
	b.t.Helper()
	b.succeed()
	b.reconcile()
}

// runAt lets a run begin and complete at a time, as for at.
func (b *fixture) runAt(minutes, seconds int) {
	b.t.Helper()
	b.at(minutes, seconds)
	b.reconcile()
	b.completes()
}

// taken are the results of a good run in mode Archive.
func (b *fixture) taken(name string) []*result {
	now := b.clock.Now().UTC()
	return []*result{{Verb: verbBackup, Succeeded: true, Reason: "BackupSucceeded", Message: "the backup was taken",
		Backup: &facts{Name: name, Snapshot: "1a2b3c4d", Size: 4711, Stored: 815,
			Started: now.Add(-30 * time.Second), Completed: now,
			ServerVersion: "17.2", Verified: &verification{Mode: databasesv1.VerifyArchive, Time: now}}},
		{Verb: verbFinish, Succeeded: true, Reason: "Finished"}}
}

// says returns "status reason" of a condition.
func (b *fixture) says(kind string) string {
	c := condition(b.backup().Status.Conditions, kind)
	return string(c.Status) + " " + c.Reason
}

// is checks conditions, each as "Type: Status Reason".
func (b *fixture) is(want ...string) {
	b.t.Helper()
	var got []string
	for _, c := range b.backup().Status.Conditions {
		got = append(got, fmt.Sprintf("%s: %s %s", c.Type, c.Status, c.Reason))
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			b.t.Errorf("want %s, got %v", w, b.backup().Status.Conditions)
		}
	}
}

// mentions checks that the message of a condition has these parts.
func (b *fixture) mentions(kind string, parts ...string) {
	b.t.Helper()
	message := condition(b.backup().Status.Conditions, kind).Message
	for _, part := range parts {
		if !strings.Contains(message, part) {
			b.t.Errorf("%q is not in: %s", part, message)
		}
	}
}

// recorded returns the events since the last call.
func (b *fixture) recorded() (all []string) {
	for len(b.events.Events) > 0 {
		all = append(all, <-b.events.Events)
	}
	return all
}
