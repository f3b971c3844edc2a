package controller

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/operator"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/testenv"
)

// defaultImage is the image that the reconcilers of these tests use for Memcacheds without an image.
const defaultImage = "memcached:1.6-alpine"

// A fixture is a namespace with a Memcached, and a reconciler behind a wire. Reconcile is called by hand, with a
// client that reads from the API server directly: no cache is outdated, so a test can check each step at once.
// Time passes only between reconciles.
type fixture struct {
	t *testing.T
	client.Client
	reconciler reconcile.Reconciler // the core with its hardening
	*wire
	key    client.ObjectKey
	clock  *clocktesting.FakePassiveClock
	events chan string
}

// sample is the original sample.
func sample(t *testing.T) *cachev1alpha1.Memcached {
	t.Helper()
	return testenv.ReadManifest[cachev1alpha1.Memcached](t, "..", "..", "config", "samples",
		"cache_v1alpha1_memcached.yaml")
}

// newFixture creates the original sample, changed, in a new namespace.
func newFixture(t *testing.T, change ...func(*cachev1alpha1.Memcached)) *fixture {
	t.Helper()
	f := &fixture{t: t, wire: &wire{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	var err error
	f.Client, err = client.New(cfg, client.Options{})
	f.must(err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cache-"}}
	f.must(f.Create(t.Context(), namespace))
	m := sample(t)
	m.Namespace = namespace.Name
	for _, apply := range change {
		apply(m)
	}
	f.must(f.Create(t.Context(), m))
	f.key = client.ObjectKeyFromObject(m)
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { f.next = next; return f.wire })
	c, err := client.New(counted, client.Options{})
	f.must(err)
	recorder := events.NewFakeRecorder(100)
	f.events = recorder.Events
	f.reconciler = compose(c, c, recorder, f.clock)
	return f
}

// compose returns the core with its hardening, as in the program.
func compose(c client.Client, live client.Reader, recorder events.EventRecorder,
	now clock.PassiveClock) reconcile.Reconciler {
	h := operator.NewHardening(Owner, FieldOwner, c, live)
	h.Clock = now
	return operator.Compose(h, func(applier owned.Applier) reconcile.ObjectReconciler[*cachev1alpha1.Memcached] {
		return &MemcachedReconciler{Client: h.Client, Applier: applier, Events: recorder, Now: now.Now, Image: defaultImage}
	})
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// reconcileLater reconciles once, a minute after the previous time, and returns the result.
func (f *fixture) reconcileLater() (ctrl.Result, error) {
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	return f.reconciler.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: f.key})
}

// reconcile reconciles once, without an error, and returns the number of writes.
func (f *fixture) reconcile() int {
	f.t.Helper()
	before := f.writes()
	_, err := f.reconcileLater()
	f.must(err)
	return f.writes() - before
}

// recorded returns the events since the last call, as "type reason".
func (f *fixture) recorded() (all []string) {
	for len(f.events) > 0 {
		words := strings.Fields(<-f.events)
		all = append(all, words[0]+" "+words[1])
	}
	return all
}

// records checks the events since the last call.
func (f *fixture) records(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		f.t.Error("events:", diff)
	}
}

func get[T client.Object](f *fixture, obj T) T {
	f.t.Helper()
	f.must(f.Get(f.t.Context(), f.key, obj))
	return obj
}

func (f *fixture) memcached() *cachev1alpha1.Memcached {
	f.t.Helper()
	return get(f, &cachev1alpha1.Memcached{})
}
func (f *fixture) pods() *appsv1.Deployment    { f.t.Helper(); return get(f, &appsv1.Deployment{}) }
func (f *fixture) service() *corev1.Service    { f.t.Helper(); return get(f, &corev1.Service{}) }
func (f *fixture) container() corev1.Container { return f.pods().Spec.Template.Spec.Containers[0] }

// edit changes an object as another client would.
func edit[T client.Object](f *fixture, obj T, change func(T)) {
	f.t.Helper()
	get(f, obj)
	change(obj)
	f.must(f.Update(f.t.Context(), obj))
}

// update changes the spec.
func (f *fixture) update(change func(*cachev1alpha1.MemcachedSpec)) {
	f.t.Helper()
	edit(f, &cachev1alpha1.Memcached{}, func(m *cachev1alpha1.Memcached) { change(&m.Spec) })
}

func (f *fixture) condition(kind string) metav1.Condition {
	f.t.Helper()
	c := meta.FindStatusCondition(f.memcached().Status.Conditions, kind)
	if c == nil {
		f.t.Fatalf("there is no condition %s", kind)
	}
	return *c
}

// is checks the "status reason" of a condition.
func (f *fixture) is(kind, want string) {
	f.t.Helper()
	if c := f.condition(kind); string(c.Status)+" "+c.Reason != want {
		f.t.Errorf("%s is %s %s (%s), want %s", kind, c.Status, c.Reason, c.Message, want)
	}
}

// deploy plays the Deployment controller, which envtest lacks: it reports ready pods, by default all.
func (f *fixture) deploy(ready ...int32) {
	f.t.Helper()
	d := f.pods()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
		ReadyReplicas: n, AvailableReplicas: n}
	if len(ready) > 0 {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready[0], ready[0]
	}
	f.must(f.Status().Update(f.t.Context(), d))
}

// complete brings the Memcached to its desired state.
func (f *fixture) complete() {
	f.t.Helper()
	f.reconcile()
	f.deploy()
	f.reconcile()
	f.is(owned.Progressing, "False Complete")
	f.recorded()
}
