package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// These tests let a manager run the loop: what they are about is what enqueues a MyWeb, and when.

// A loop is a manager that serves the MyWebs of two namespaces of the test's own, behind a wire.
type loop struct {
	*gomega.WithT
	*wire
	t          *testing.T
	admin      client.Client
	reconciler *Reconciler
	priorities *bool // nil is controller-runtime's default
	concurrent int   // workers, 0 is controller-runtime's default, 1
	here       string
	there      string
	stop       func() // ends the manager and waits for it

	mu    sync.Mutex
	names []string // of the MyWebs that were reconciled, in order
}

// newLoop makes the namespaces, in which nothing runs yet.
func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{WithT: gomega.NewWithT(t), wire: &wire{}, t: t, stop: func() {}}
	l.SetDefaultEventuallyTimeout(20 * time.Second)
	l.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	l.SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	l.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	l.admin, err = client.New(config, client.Options{Scheme: newScheme()})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	for _, name := range []*string{&l.here, &l.there} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
		l.Expect(l.admin.Create(t.Context(), namespace)).To(gomega.Succeed())
		*name = namespace.Name
	}
	return l
}

// setup is what a test may do in place of SetupWithManager.
type setup func(r *Reconciler, mgr ctrl.Manager) error

// workers is what SetupWithManager does, and notes each MyWeb that is reconciled.
func (l *loop) workers(n int) setup {
	l.concurrent = n
	return l.with(func(next reconcile.Reconciler) reconcile.Reconciler { return next })
}

// with puts a reconciler between the controller and the one that is tested.
func (l *loop) with(between func(reconcile.Reconciler) reconcile.Reconciler) setup {
	return func(r *Reconciler, mgr ctrl.Manager) error {
		noted := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			l.mu.Lock()
			l.names = append(l.names, req.Name)
			l.mu.Unlock()
			return between(r).Reconcile(ctx, req)
		})
		return errors.Join(startInformers(l.t.Context(), mgr.GetCache()), r.builder(mgr).Complete(finishInFlight(noted)))
	}
}

// start runs the manager until the test ends.
func (l *loop) start(setUp setup) {
	l.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l.wire })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  newScheme(),
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:   CacheOptions([]string{l.here, l.there}),
		Metrics: server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), UsePriorityQueue: l.priorities,
			MaxConcurrentReconciles: l.concurrent},
	})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("myweb-operator"))
	l.Expect(setUp(l.reconciler, mgr)).To(gomega.Succeed())
	l.stop = testenv.Run(l.t, mgr.Start)
}

// reconciled are the names of the MyWebs that were reconciled since the last call.
func (l *loop) reconciled() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = nil
	return names
}

// times returns a function that says how often a MyWeb was reconciled.
func (l *loop) times(name string) func() int {
	n := 0
	return func() int {
		for _, reconciled := range l.reconciled() {
			if reconciled == name {
				n++
			}
		}
		return n
	}
}

// rest waits until nothing is looked at for longer than a reconcile waits for the cache.
func (l *loop) rest() {
	l.t.Helper()
	l.Eventually(func() bool {
		l.reconciled()
		time.Sleep(readTimeout + 300*time.Millisecond)
		return len(l.reconciled()) == 0
	}).Should(gomega.BeTrue(), "the loop reaches the steady state")
}

// create makes a MyWeb, changed, on a node port that the cluster chooses.
func (l *loop) create(name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	l.t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	for _, f := range change {
		f(web)
	}
	l.Expect(l.admin.Create(l.t.Context(), web)).To(gomega.Succeed())
	return web
}

// merge changes an object of this namespace by a merge patch.
func (l *loop) merge(obj client.Object, name, patch string) {
	l.t.Helper()
	obj.SetNamespace(l.here)
	obj.SetName(name)
	l.Expect(l.admin.Patch(l.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch)))).
		To(gomega.Succeed())
}

func (l *loop) web(name string) *webv1.MyWeb {
	web := &webv1.MyWeb{}
	l.Expect(l.admin.Get(context.Background(), client.ObjectKey{Namespace: l.here, Name: name}, web)).To(gomega.Succeed())
	return web
}

// degraded returns a function that says "status reason" of a MyWeb's condition.
func (l *loop) degraded(name string) func() string {
	return func() string {
		if c := meta.FindStatusCondition(l.web(name).Status.Conditions, webv1.ConditionDegraded); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return "none"
	}
}

var ports atomic.Int32

// freePort returns a node port that no other test uses, from the range of which the API server gives
// none by itself while it has others.
func freePort() int32 { return 30000 + ports.Add(1) }

const well = "False AsExpected"

// deployed plays the Deployment controller, which envtest lacks, and returns the Deployment.
func (l *loop) deployed(name string) {
	l.t.Helper()
	l.Eventually(func() error {
		d := &appsv1.Deployment{}
		if err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: l.here, Name: name}, d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
			ReadyReplicas: n, AvailableReplicas: n}
		return l.admin.Status().Update(l.t.Context(), d)
	}).Should(gomega.Succeed())
}

func (l *loop) completed(name string) func() bool {
	return func() bool { return l.web(name).Status.Completed }
}

func TestATakenNodePortHealsByAWatchAndNotByAsking(t *testing.T) {
	l := newLoop(t)
	port := freePort()
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.there, Name: "other"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
	l.Expect(l.admin.Create(t.Context(), other)).To(gomega.Succeed())
	l.start(l.workers(2))
	for _, name := range []string{"one", "two"} { // both ask for it
		l.create(name, asking(port))
		l.Eventually(l.degraded(name)).Should(gomega.Equal("True NodePortUnavailable"))
	}
	l.rest()
	before := l.requests()
	l.Consistently(l.reconciled).Should(gomega.BeEmpty(), "it is tried again, though nothing changed")
	if diff := cmp.Diff(before, l.requests()); diff != "" {
		t.Errorf("sent while nothing changed:\n%s", diff)
	}

	other.Spec.Ports[0].NodePort = freePort() // an update, whose old state matters
	l.Expect(l.admin.Update(t.Context(), other)).To(gomega.Succeed())
	healed := func() int {
		n := 0
		for _, name := range []string{"one", "two"} {
			if l.degraded(name)() == well {
				n++
			}
		}
		return n
	}
	l.Eventually(healed).Should(gomega.Equal(1), "one of the two gets the port")
	l.rest()
	l.Expect(healed()).To(gomega.Equal(1))
	for _, name := range []string{"one", "two"} {
		if l.degraded(name)() == well {
			l.Expect(l.admin.Delete(t.Context(), l.web(name))).To(gomega.Succeed())
			l.Expect(l.admin.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name}})).
				To(gomega.Succeed())
		} else {
			defer l.Eventually(l.degraded(name)).Should(gomega.Equal(well), "a deletion frees the port too")
		}
	}
	for what := range l.requests() {
		if strings.HasPrefix(what, "GET ") && !strings.HasPrefix(what, "GET /api") {
			t.Errorf("%s was sent: reads come from the cache", what)
		}
	}
}

func TestAConflictHealsByAWatch(t *testing.T) {
	l := newLoop(t)
	l.start(l.workers(2))
	for _, kind := range []string{"ConfigMap", "Deployment", "Service"} {
		name := strings.ToLower(kind)
		unmanaged := mywebtest.Unmanaged(kind, l.here, name)
		l.Expect(l.admin.Create(t.Context(), unmanaged)).To(gomega.Succeed())
		l.create(name)
		l.Eventually(l.degraded(name)).Should(gomega.Equal("True ResourceConflict"))
		l.Expect(l.admin.Delete(t.Context(), unmanaged)).To(gomega.Succeed())
		l.Eventually(l.degraded(name)).Should(gomega.Equal(well), kind)
	}
}

func TestOneWatchForEachKindAndNothingElse(t *testing.T) {
	l := newLoop(t)
	l.start(l.workers(2))
	l.create("site")
	l.Eventually(l.degraded("site")).Should(gomega.Equal(well))
	watches := map[string]int{}
	for what, n := range l.requests() {
		if strings.HasPrefix(what, "WATCH ") || strings.HasPrefix(what, "LIST ") {
			watches[what] = n
		}
	}
	// two namespaces
	want := map[string]int{"WATCH mywebs": 2, "WATCH configmaps": 2, "WATCH deployments": 2, "WATCH services": 2}
	if diff := cmp.Diff(want, watches); diff != "" {
		t.Error(diff)
	}
	l.Expect(l.admin.Create(t.Context(), mywebtest.Unmanaged("ConfigMap", l.here, "theirs"))).To(gomega.Succeed())
	kept := &corev1.ConfigMap{}
	l.Eventually(func() error {
		return l.reconciler.Get(t.Context(), client.ObjectKey{Namespace: l.here, Name: "theirs"}, kept)
	}).Should(gomega.Succeed())
	l.Expect(kept.Data).To(gomega.BeEmpty(), "what others store is not kept")
}

func TestWhatEnqueuesAMyWeb(t *testing.T) {
	l := newLoop(t)
	l.start(l.workers(2))
	l.create("site")
	l.deployed("site")
	l.Eventually(l.completed("site")).Should(gomega.BeTrue(), "the status of a child does")
	l.rest()
	l.merge(&webv1.MyWeb{}, "site", `{"spec":{"replicas":2}}`)
	l.Eventually(l.reconciled).ShouldNot(gomega.BeEmpty(), "a spec does")
	l.Expect(l.admin.Create(t.Context(), mywebtest.Unmanaged("ConfigMap", l.here, "theirs"))).To(gomega.Succeed())
	l.Consistently(l.reconciled).ShouldNot(gomega.ContainElement("other"),
		"what others own does not, unless a MyWeb has its name")
}

func TestAFalsifiedStatusIsCorrectedButNotEndlessly(t *testing.T) {
	l := newLoop(t)
	l.start(l.workers(2))
	l.create("site")
	l.Eventually(l.degraded("site")).Should(gomega.Equal(well))
	l.rest()
	before := l.writes("PUT mywebs/status site")
	for i := range 20 {
		lie := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: "site"}}
		patch := fmt.Sprintf(`{"status":{"completed":true,"nodePort":%d}}`, i)
		l.Expect(l.admin.Status().Patch(t.Context(), lie, client.RawPatch("application/merge-patch+json", []byte(patch)))).
			To(gomega.Succeed())
		l.Eventually(func() bool {
			return !l.web("site").Status.Completed || i >= 5
		}).Should(gomega.BeTrue())
	}
	l.Consistently(func() int64 {
		return l.writes("PUT mywebs/status site") - before
	}).Should(gomega.BeNumerically("~", 5, 1))
	l.Expect(l.requests()["POST events "]).To(gomega.BeZero(), "a correction is no transition")
	l.Eventually(l.completed("site"), "15s").Should(gomega.BeFalse(), "in the end it is corrected")
}

func TestAnEventFilterForAllWouldHideTheStatusOfChildren(t *testing.T) {
	l := newLoop(t)
	l.start(func(r *Reconciler, mgr ctrl.Manager) error {
		return errors.Join(startInformers(t.Context(), mgr.GetCache()),
			r.builder(mgr).WithEventFilter(predicate.GenerationChangedPredicate{}).Complete(r))
	})
	l.create("site")
	l.Eventually(l.degraded("site")).Should(gomega.Equal(well))
	l.rest()
	l.deployed("site")
	l.Consistently(l.completed("site")).Should(gomega.BeFalse(), "the Deployment is ready, and nobody was informed")
}

// hold keeps a request on its way: under has begun, release lets it go on.
func (l *loop) hold(request string) (under, release chan bool) {
	under, release = make(chan bool, 1), make(chan bool)
	l.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
		if what == request {
			under <- true
			<-release
		}
		return pass()
	})
	return under, release
}

func TestASlowMyWebDelaysOthersOnlyWithOneWorker(t *testing.T) {
	for name, test := range map[string]struct {
		workers int
		served  bool
	}{"one worker": {1, false}, "two workers": {2, true}} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			slow, release := l.hold("PATCH services slow")
			l.start(l.workers(test.workers))
			defer close(release)
			l.create("slow")
			<-slow
			for _, other := range []string{"a", "b", "c"} {
				l.create(other, asking(freePort()))
			}
			served := func() bool {
				return l.degraded("a")() == well && l.degraded("b")() == well && l.degraded("c")() == well
			}
			if test.served {
				l.Eventually(served).Should(gomega.BeTrue())
			} else {
				l.Consistently(served).Should(gomega.BeFalse())
			}
		})
	}
}

func TestOwnWritesThatTheCacheDoesNotSeeDelayTheirMyWebOnly(t *testing.T) {
	l := newLoop(t)
	l.start(l.workers(1))
	l.create("before")
	l.Eventually(l.degraded("before")).Should(gomega.Equal(well))
	thaw := l.freeze("configmaps")
	defer thaw()
	l.create("site")
	l.Eventually(func() int64 { return l.writes("PATCH configmaps site") }).Should(gomega.Equal(int64(1)))
	// it is enqueued, and must not believe that there is no ConfigMap
	l.merge(&webv1.MyWeb{}, "site", `{"spec":{"replicas":2}}`)
	l.Eventually(l.times("site")).Should(gomega.BeNumerically(">=", 2),
		"it is reconciled again, and waits for its ConfigMap")
	l.create("other")
	l.Eventually(l.degraded("other")).Should(gomega.Equal(well), "the only worker has time for others")
	l.Expect(l.writes("PATCH configmaps site")).To(gomega.Equal(int64(1)), "a child was made twice")
	thaw()
	l.Eventually(func() int64 { return l.web("site").Status.ObservedGeneration }).Should(gomega.Equal(int64(2)))
	l.Expect(l.writes("PATCH configmaps site")).To(gomega.Equal(int64(1)))
}

// cached counts the MyWebs with an image, as the operator knows them.
func (l *loop) cached(image string) (seen int) {
	var webs webv1.MyWebList
	l.Expect(l.reconciler.List(l.t.Context(), &webs)).To(gomega.Succeed())
	for _, web := range webs.Items {
		if web.Spec.Image == image {
			seen++
		}
	}
	return seen
}

func TestAChangeIsNotStuckBehindTheInitialList(t *testing.T) {
	const many, edits = 40, 5
	nth := func(i int) string { return fmt.Sprintf("web-%d", i) }
	for name, test := range map[string]struct {
		priorities *bool
		first      bool
	}{"as it is": {nil, true}, "with a plain queue": {new(false), false}} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			l.priorities = test.priorities
			for i := range many {
				l.create(nth(i))
			}
			gate := make(chan bool)
			l.start(func(r *Reconciler, mgr ctrl.Manager) error {
				held := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					<-gate
					l.mu.Lock()
					defer l.mu.Unlock()
					l.names = append(l.names, req.Name)
					return ctrl.Result{}, nil
				})
				return errors.Join(startInformers(t.Context(), mgr.GetCache()), r.builder(mgr).Complete(held))
			})
			defer close(gate)
			step := func() string {
				gate <- true
				var looks []string
				l.Eventually(func() []string { looks = append(looks, l.reconciled()...); return looks }).Should(gomega.HaveLen(1))
				return looks[0]
			}
			done := []string{step(), step()} // the operator restarted, and began with its list
			changed := map[string]bool{}
			for i := range many {
				if name := nth(i); !slices.Contains(done, name) && len(changed) < edits {
					changed[name] = true
					l.merge(&webv1.MyWeb{}, name, `{"spec":{"image":"nginx:1.29"}}`) // a user changes some
				}
			}
			l.Eventually(func() int { return l.cached("nginx:1.29") }).Should(gomega.Equal(edits))
			time.Sleep(time.Second) // the event handler runs beside the cache, and cannot be awaited
			steps := 0
			for ; len(changed) > 0; steps++ {
				delete(changed, step())
			}
			t.Logf("%d changed MyWebs of %d were all served after %d", edits, many, steps)
			if first := steps <= edits+2; first != test.first {
				t.Errorf("%d changed MyWebs were all served after %d; want them to be the next: %v", edits, steps, test.first)
			}
		})
	}
}

func TestAPanicIsAboutOneMyWebOnly(t *testing.T) {
	l := newLoop(t)
	l.start(l.with(func(next reconcile.Reconciler) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			if req.Name == "panics" {
				panic("a bug")
			}
			return next.Reconcile(ctx, req)
		})
	}))
	l.create("panics")
	l.create("site")
	l.Eventually(l.degraded("site")).Should(gomega.Equal(well))
	l.Eventually(l.times("panics")).Should(gomega.BeNumerically(">", 4), "what panics is tried again")
}

func TestAReconcileUnderWayEndsBeforeTheManagerDoes(t *testing.T) {
	l := newLoop(t)
	under, release := l.hold("PATCH configmaps site")
	l.start(l.workers(1))
	l.create("site")
	<-under
	var stopped atomic.Bool
	done := make(chan bool)
	go func() { l.stop(); stopped.Store(true); close(done) }()
	l.Consistently(stopped.Load, "500ms").Should(gomega.BeFalse(), "a write is under way")
	close(release)
	<-done
	l.Expect(l.degraded("site")()).To(gomega.Equal(well), "the reconcile came to its end")
	if sent := slices.Sorted(maps.Keys(l.requests())); !slices.Contains(sent, "PUT mywebs/status site") {
		t.Errorf("sent: %v", sent)
	}
}
