package controller

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/program"
	"github.com/example/memcached-operator/internal/testenv"
)

// In these tests a manager runs the loop: they are about the events that enqueue, and about the number of requests.

// A loop is a manager behind a wire.
type loop struct {
	*gomega.WithT
	*wire
	t     *testing.T
	admin client.Client
	cache client.Reader // of the manager
	here  string        // the namespace of the test
	stop  func()        // ends the manager and waits for it
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{WithT: gomega.NewWithT(t), wire: &wire{}, t: t, stop: func() {}}
	l.SetDefaultEventuallyTimeout(20 * time.Second)
	l.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	l.SetDefaultConsistentlyDuration(time.Second)
	l.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	l.admin, err = client.New(cfg, client.Options{})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.here = l.namespace()
	return l
}

func (l *loop) namespace() string {
	l.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cache-"}}
	l.Expect(l.admin.Create(l.t.Context(), namespace)).To(gomega.Succeed())
	return namespace.Name
}

// setup may replace SetupWithManager in a test.
type setup func(r reconcile.Reconciler, mgr ctrl.Manager) error

func twoWorkers(r reconcile.Reconciler, mgr ctrl.Manager) error {
	return SetupWithManager(mgr, r, controller.Options{MaxConcurrentReconciles: 2})
}

// newManager returns a manager like that of internal/program, without metrics and probes.
func newManager(cfg *rest.Config, namespaces ...string) (ctrl.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:      program.CacheOptions(namespaces, Trim),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
}

// start runs the manager, as a user and for the given namespaces, until the test ends.
func (l *loop) start(as *rest.Config, namespaces []string, setUp setup) {
	l.t.Helper()
	counted := rest.CopyConfig(as)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l.wire })
	mgr, err := newManager(counted, namespaces...)
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.cache = mgr.GetCache()
	recorder := mgr.GetEventRecorder("memcached-operator")
	hardened := compose(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{})
	l.Expect(setUp(hardened, mgr)).To(gomega.Succeed())
	l.stop = testenv.Run(l.t, mgr.Start)
}

// create creates the original sample, changed.
func (l *loop) create(namespace string, change ...func(*cachev1alpha1.Memcached)) *cachev1alpha1.Memcached {
	l.t.Helper()
	m := sample(l.t)
	m.Namespace = namespace
	for _, f := range change {
		f(m)
	}
	l.Expect(l.admin.Create(l.t.Context(), m)).To(gomega.Succeed())
	return m
}

// merge changes an object by a merge patch.
func (l *loop) merge(obj client.Object, patch string) {
	l.t.Helper()
	l.Expect(l.admin.Patch(l.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch)))).
		To(gomega.Succeed())
}

// is returns a function that returns the "status reason" of a condition of a Memcached.
func (l *loop) is(m *cachev1alpha1.Memcached, kind string) func() string {
	return func() string {
		now := &cachev1alpha1.Memcached{}
		l.Expect(l.admin.Get(context.Background(), client.ObjectKeyFromObject(m), now)).To(gomega.Succeed())
		if c := meta.FindStatusCondition(now.Status.Conditions, kind); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return "none"
	}
}

const well = "False AsExpected"

// deployed plays the Deployment controller, which envtest lacks: it reports that all n pods are ready.
func (l *loop) deployed(m *cachev1alpha1.Memcached, n int32) {
	l.t.Helper()
	l.Eventually(func() error {
		d := &appsv1.Deployment{}
		if err := l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(m), d); err != nil {
			return err
		}
		if *d.Spec.Replicas != n {
			return errors.New("the Deployment does not ask for them yet")
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
			ReadyReplicas: n, AvailableReplicas: n}
		return l.admin.Status().Update(l.t.Context(), d)
	}).Should(gomega.Succeed())
}

// quiet waits until the operator has sent no request for half a second, and returns the requests until then. The
// operator sends events in the background, after the status that belongs to them.
func (l *loop) quiet() map[string]int {
	l.t.Helper()
	sent, since := l.requests(), time.Now()
	l.Eventually(func() time.Duration {
		if now := l.requests(); !maps.Equal(now, sent) {
			sent, since = now, time.Now()
		}
		return time.Since(since)
	}, "30s").Should(gomega.BeNumerically(">", 500*time.Millisecond), "the operator comes to rest")
	return sent
}

// complete brings a Memcached to its desired state.
func (l *loop) complete(m *cachev1alpha1.Memcached, n int32) {
	l.t.Helper()
	l.deployed(m, n)
	l.Eventually(l.is(m, owned.Progressing)).Should(gomega.Equal("False Complete"))
}

func (l *loop) configMap(name string, data map[string]string) *corev1.ConfigMap {
	l.t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name}, Data: data}
	l.Expect(l.admin.Create(l.t.Context(), c)).To(gomega.Succeed())
	return c
}

func TestWhatOneMemcachedCosts(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, twoWorkers)
	m := l.create(l.here)
	l.Eventually(l.is(m, owned.Degraded)).Should(gomega.Equal(well)) // the first status, before its pods are ready
	l.complete(m, 3)
	l.quiet() // a watch may report a write before its response is counted
	children, statuses := l.writes("patch"), l.writes("update memcacheds/status")
	if all := l.writes(); children != 2 || statuses != 2 || all != children+statuses {
		t.Errorf("from creation to complete %d children, %d statuses and %d writes in all: %v", children,
			statuses, all, l.requests())
	}
	for what := range l.requests() {
		if strings.HasPrefix(what, "get ") {
			t.Errorf("%s was sent: reads come from the cache", what)
		}
	}
	l.Eventually(func() int { return l.requests()["create events"] }).Should(gomega.Equal(1)) // sent in the background
	before := l.requests()
	const rest = 4 * time.Second
	l.Consistently(l.requests, rest).Should(gomega.Equal(before), "in steady state nothing is sent")
	l.stop()

	restarted := newLoop(t)
	restarted.start(cfg, []string{l.here}, twoWorkers)
	restarted.Eventually(func() int { return restarted.requests()["watch configmaps"] }).Should(gomega.Equal(1))
	restarted.Eventually(func() error {
		return restarted.cache.Get(t.Context(), client.ObjectKeyFromObject(m), &corev1.Service{})
	}).Should(gomega.Succeed())
	restarted.Consistently(func() int { return restarted.writes() }).Should(gomega.BeZero(), "the operator started again")
	t.Logf("creation to complete: %d child writes, %d status writes; %s in steady state: 0 requests; a restart: %d writes",
		children, statuses, rest, restarted.writes())
}

func TestOneWatchForEachKindAndNothingElse(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, twoWorkers)
	l.Eventually(l.is(l.create(l.here), owned.Degraded)).Should(gomega.Equal(well))
	watches := map[string]int{}
	for what, n := range l.requests() {
		if strings.HasPrefix(what, "watch ") || strings.HasPrefix(what, "list ") {
			watches[what] = n
		}
	}
	want := map[string]int{"watch memcacheds": 1, "watch configmaps": 1, "watch deployments": 1, "watch services": 1}
	if diff := cmp.Diff(want, watches); diff != "" {
		t.Error(diff)
	}
	theirs := l.configMap("theirs", map[string]string{"much": "text", KeyMemory: "1"})
	kept := &corev1.ConfigMap{}
	l.Eventually(func() error {
		return l.cache.Get(t.Context(), client.ObjectKeyFromObject(theirs), kept)
	}).Should(gomega.Succeed())
	l.Expect(kept.Data).To(gomega.Equal(map[string]string{KeyMemory: "1"}), "the cache keeps only the keys that are read")
	l.Expect(kept.ManagedFields).To(gomega.BeEmpty())
}

func TestAnUnmanagedObjectIsNoticedByAWatch(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, twoWorkers)
	for name, unmanaged := range map[string]client.Object{
		"pods": &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}},
		"service": &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		unmanaged.SetNamespace(l.here)
		unmanaged.SetName(name)
		l.Expect(l.admin.Create(t.Context(), unmanaged)).To(gomega.Succeed())
		m := l.create(l.here, func(m *cachev1alpha1.Memcached) { m.Name = name })
		l.Eventually(l.is(m, owned.Degraded)).Should(gomega.Equal("True ResourceConflict"))
		before := l.quiet()
		l.Consistently(l.requests, "500ms").Should(gomega.Equal(before), "nothing is sent while it is there")
		l.Expect(l.admin.Delete(t.Context(), unmanaged)).To(gomega.Succeed())
		l.Eventually(l.is(m, owned.Degraded)).Should(gomega.Equal(well), name)
	}
}

func TestAnUnmanagedObjectStartsNoReconcile(t *testing.T) {
	l := newLoop(t)
	var reconciles atomic.Int32
	l.start(cfg, []string{l.here}, func(r reconcile.Reconciler, mgr ctrl.Manager) error {
		return twoWorkers(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			reconciles.Add(1)
			return r.Reconcile(ctx, req)
		}), mgr)
	})
	unmanaged := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: "unmanaged"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	l.Expect(l.admin.Create(t.Context(), unmanaged)).To(gomega.Succeed())
	l.merge(unmanaged, `{"metadata":{"annotations":{"example.com/note":"a"}}}`)
	l.Eventually(func() (string, error) {
		seen := &corev1.Service{}
		err := l.cache.Get(t.Context(), client.ObjectKeyFromObject(unmanaged), seen)
		return seen.ResourceVersion, err
	}).Should(gomega.Equal(unmanaged.ResourceVersion))
	l.Consistently(reconciles.Load).Should(gomega.BeZero())
	l.create(l.here)
	l.Eventually(reconciles.Load).ShouldNot(gomega.BeZero(), "a Memcached is reconciled")
}

func TestAConfigMapEnqueuesOnlyTheMemcachedsThatNameIt(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, twoWorkers)
	waiting := l.create(l.here, func(m *cachev1alpha1.Memcached) {
		m.Name, m.Spec.ConfigRef = "waiting", &cachev1alpha1.ConfigReference{Name: "shared"}
	})
	own := l.create(l.here, func(m *cachev1alpha1.Memcached) {
		m.Name, m.Spec.ConfigRef = "own", &cachev1alpha1.ConfigReference{} // no webhook fills in the name
	})
	for _, m := range []*cachev1alpha1.Memcached{waiting, own} {
		l.Eventually(l.is(m, owned.Degraded)).Should(gomega.Equal("True ConfigNotFound"))
	}
	before := l.quiet()
	l.Consistently(l.requests).Should(gomega.Equal(before), "a missing ConfigMap is not asked for again and again")
	shared := l.configMap("shared", map[string]string{KeyMemory: "many"})
	l.Eventually(l.is(waiting, owned.Degraded)).Should(gomega.Equal("True InvalidConfig"))
	l.Expect(l.is(own, owned.Degraded)()).To(gomega.Equal("True ConfigNotFound"))
	l.merge(shared, `{"data":{"memoryMB":"32"}}`)
	l.Eventually(l.is(waiting, owned.Degraded)).Should(gomega.Equal(well))
	l.configMap("own", nil)
	l.Eventually(l.is(own, owned.Degraded)).Should(gomega.Equal(well))
}

func TestAnEventFilterForAllWouldHideTheStatusOfChildren(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, func(r reconcile.Reconciler, mgr ctrl.Manager) error {
		return errors.Join(mgr.GetFieldIndexer().
			IndexField(t.Context(), &cachev1alpha1.Memcached{}, configRefField, indexConfigRef),
			watches(mgr).WithEventFilter(predicate.GenerationChangedPredicate{}).Complete(r))
	})
	m := l.create(l.here)
	l.Eventually(l.is(m, owned.Degraded)).Should(gomega.Equal(well))
	l.quiet() // the operator's own writes enqueue, too
	l.deployed(m, 3)
	l.Consistently(l.is(m, owned.Available), "2s").Should(gomega.Equal("False NoReadyPod"),
		"all pods are ready, and no event reported it")
}
