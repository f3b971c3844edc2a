package controller

import (
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/program"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// A loop is a fixture whose operator runs in a manager, as a user with the shipped permissions.
type loop struct {
	*fixture
	*gomega.WithT
	*wire
	ahead  *shifted                          // the operator's clock
	before atomic.Pointer[func(what string)] // is called before each request
}

// shifted is the real clock, put forward: a test does not have to wait for the next minute.
type shifted struct{ by atomic.Int64 }

func (s *shifted) Now() time.Time                  { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	return testenv.ReadManifest[rbacv1.ClusterRole](t, "..", "..", "config", "rbac", "role.yaml").Rules
}

// allow gives a user only these permissions.
func (b *fixture) allow(user string, rules []rbacv1.PolicyRule) {
	b.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}, Rules: rules}
	b.must(b.Create(b.t.Context(), role))
	b.must(b.Create(b.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}))
	// The API server's authorizer reads the permissions a moment later.
	gomega.NewWithT(b.t).Eventually(func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rules[0].APIGroups[0],
				Resource: rules[0].Resources[0], Verb: rules[0].Verbs[0]}}}
		err := b.Create(b.t.Context(), review)
		return review.Status.Allowed, err
	}, "30s", "5ms").Should(gomega.BeTrue())
}

// RoundTrip carries a request of the operator.
func (l *loop) RoundTrip(r *http.Request) (*http.Response, error) {
	if before := l.before.Load(); before != nil {
		what, _, _ := describe(r)
		(*before)(what)
	}
	return l.wire.RoundTrip(r)
}

func newLoop(t *testing.T, change ...func(*backup)) *loop {
	t.Helper()
	l := &loop{fixture: newFixture(t, change...), WithT: gomega.NewWithT(t), wire: &wire{}, ahead: &shifted{}}
	l.SetDefaultEventuallyTimeout(30 * time.Second)
	l.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	user := "operator-" + l.namespace
	l.allow(user, shippedRules(t))
	cfg := rest.CopyConfig(config)
	cfg.Impersonate.UserName = user
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:      program.CacheOptions(nil, Trim),
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	l.must(err)
	base := Base{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(manager), Clock: l.ahead,
		Allowed: Allowed{Images: patterns{"example.com/*"}}}
	l.must((&DatabaseBackupReconciler{Base: base, Metrics: NewMetrics(mgr.GetCache(), l.ahead)}).SetupWithManager(mgr, 2))
	l.must((&DatabaseRestoreReconciler{Base: base}).SetupWithManager(mgr, 2))
	testenv.Run(t, mgr.Start)
	// The test finishes Jobs by hand, with the time of the real clock.
	l.clock = clocktesting.NewFakePassiveClock(time.Now())
	return l
}

// active waits for a Job that runs.
func (l *loop) active() *batchv1.Job {
	l.t.Helper()
	l.Eventually(func() bool { return l.backup().Status.InProgress }).Should(gomega.BeTrue())
	return l.job(l.backup().Status.ActiveJob)
}

// The operator does everything that it ever does, each step enqueued by a watch, with the shipped permissions: no
// request is denied, and each permission is used.
func TestWatchesEnqueueWhatWaitsAndThePermissionsSuffice(t *testing.T) {
	l := newLoop(t, deleteFiles, func(x *backup) {
		x.Spec.Schedule, x.Spec.Immediate, x.Spec.SuccessfulJobsHistoryLimit = "0 0 1 1 *", true, new(int32(0))
	})
	job := l.active()
	none := l.podQuota()
	l.failedCreate(job)
	l.comesToSay("Ready", "False PodRejected", "a pod is overdue")
	l.Expect(condition(l.backup().Status.Conditions, "Ready").Message).To(gomega.ContainSubstring(quotaMessage))
	l.lift(none)
	l.run(job, unschedulable)
	l.comesToSay("Ready", "False Unschedulable", "a pod enqueues it")
	l.losePods()
	l.clock.SetTime(time.Now())
	l.succeed()
	l.comesToSay("BackupSucceeded", "True BackupSucceeded", "a Job enqueues it")
	l.Eventually(l.jobs).Should(gomega.BeEmpty(), "the history has no room")
	l.ahead.by.Store(int64(time.Minute))
	l.edit(asks("now"))
	l.Eventually(func() string {
		return l.backup().Status.LastHandledTrigger
	}).Should(gomega.Equal("now"), "an annotation enqueues it")
	l.active()
	l.succeed()
	l.Eventually(func() string { return l.backup().Status.ActiveJob }).Should(gomega.BeEmpty())
	l.ready(0)
	l.comesToSay("Ready", "False TargetNotReady", "a StatefulSet enqueues it")
	l.ready(1)
	l.comesToSay("Ready", "True Scheduled")
	service := &corev1.Service{ObjectMeta: l.meta("db-rw")}
	l.must(l.Delete(t.Context(), service))
	l.comesToSay("Ready", "False TargetNotFound", "a Service enqueues it")
	l.restored(service)

	l.must(l.Delete(t.Context(), l.backup()))
	l.Eventually(func() error {
		return l.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "orders-delete"}, &batchv1.Job{})
	}).Should(gomega.Succeed())
	l.run(l.job("orders-delete"), l.ended(0, "Completed", deletedFiles))
	l.finish(l.job("orders-delete"), "")
	l.Eventually(l.gone).Should(gomega.BeTrue())
	l.Eventually(func() int { return l.requests()["create events"] }).ShouldNot(gomega.BeZero())
	for _, denied := range l.wire.refused() {
		t.Error("denied:", denied)
	}
	l.allUsed()
}

// comesToSay waits until a condition reports this status and reason.
func (l *loop) comesToSay(kind, want string, why ...any) {
	l.t.Helper()
	l.Eventually(func() string { return l.says(kind) }).Should(gomega.Equal(want), why...)
}

// restored runs a restore that waits for the Service, and finds tables.
func (l *loop) restored(service *corev1.Service) {
	l.t.Helper()
	l.ask()
	restoring := func() string {
		return string(condition(l.restore().Status.Conditions, databasesv1.ConditionSucceeded).Reason)
	}
	l.Eventually(restoring).Should(gomega.Equal("TargetNotFound"))
	service.ObjectMeta = l.meta("db-rw")
	service.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5433}}}
	l.must(l.Create(l.t.Context(), service)) // this enqueues the restore
	l.Eventually(func() bool { return l.restore().Status.InProgress }).Should(gomega.BeTrue())
	job := l.job("monday-restore")
	l.clock.SetTime(time.Now())
	l.run(job, l.ended(3, "Error", &result{Verb: "restore", Reason: "TargetNotEmpty", Message: "it has tables"}))
	l.finish(job, batchv1.JobReasonPodFailurePolicy)
	l.Eventually(restoring).Should(gomega.Equal("TargetNotEmpty"))
}

// allUsed compares the permissions that requests needed with those of the role.
func (l *loop) allUsed() {
	l.t.Helper()
	used, shipped := l.permissions(), map[permission]bool{}
	for p := range maps.Clone(used) {
		if p.verb == "watch" { // an older API server does not stream the first list
			used[permission{p.group, p.resource, "list"}] = true
		}
	}
	for _, rule := range shippedRules(l.t) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				shipped[permission{rule.APIGroups[0], resource, verb}] = true
			}
		}
	}
	if diff := cmp.Diff(shipped, used); diff != "" {
		l.t.Error("shipped, and used:", diff)
	}
}

// While one object waits for the response to its Job, the runs of other objects begin: a read of Jobs from the cache
// does not wait until the cache has this Job.
func TestASlowCreateOfOneJobDoesNotStopOthers(t *testing.T) {
	yearly := func(x *backup) { x.Spec.Schedule = "@yearly" }
	l := newLoop(t, yearly)
	l.comesToSay("Ready", "True Scheduled")
	held, released, first := make(chan struct{}), make(chan struct{}), atomic.Bool{}
	t.Cleanup(func() { close(released) })
	hold := func(what string) {
		if what == "create jobs" && first.CompareAndSwap(false, true) {
			close(held)
			<-released
		}
	}
	l.before.Store(&hold)
	l.edit(asks("now"))
	<-held
	other := complete(l.namespace)
	other.Name = "other"
	yearly(other)
	asks("now")(other)
	l.must(l.Create(t.Context(), other))
	l.Eventually(func() bool {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(other), other))
		return other.Status.InProgress
	}, timeout/3).Should(gomega.BeTrue())
}
