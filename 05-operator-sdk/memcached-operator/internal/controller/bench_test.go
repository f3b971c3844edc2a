package controller

import (
	"net/http"
	"os"
	"path/filepath"
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
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// defaultImage is what the reconcilers of these tests give to Memcacheds that name no image.
const defaultImage = "memcached:1.6-alpine"

// A bench is a namespace with a Memcached and a reconciler behind a wire. Reconcile is called by hand, with a
// client that reads from the API server directly: no cache is behind, so each step can be judged at once.
// Time passes only between reconciles.
type bench struct {
	t *testing.T
	client.Client
	Reconciler *MemcachedReconciler
	*wire
	key    client.ObjectKey
	clock  *clocktesting.FakePassiveClock
	events chan string
}

// sample is the original sample.
func sample(t *testing.T) *cachev1alpha1.Memcached {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "cache_v1alpha1_memcached.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := &cachev1alpha1.Memcached{}
	if err := yaml.UnmarshalStrict(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// newBench applies the original sample, changed, in a namespace of the test's own.
func newBench(t *testing.T, change ...func(*cachev1alpha1.Memcached)) *bench {
	t.Helper()
	b := &bench{t: t, wire: &wire{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	var err error
	b.Client, err = client.New(cfg, client.Options{Scheme: newScheme()})
	b.must(err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cache-"}}
	b.must(b.Create(t.Context(), namespace))
	m := sample(t)
	m.Namespace = namespace.Name
	for _, f := range change {
		f(m)
	}
	b.must(b.Create(t.Context(), m))
	b.key = client.ObjectKeyFromObject(m)
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { b.next = next; return b.wire })
	operator, err := client.New(counted, client.Options{Scheme: newScheme()})
	b.must(err)
	b.restart(operator)
	return b
}

// restart puts a reconciler with an empty memory in the place of the one before.
func (b *bench) restart(operator client.Client) {
	recorder := events.NewFakeRecorder(100)
	b.Reconciler, b.events = New(operator, recorder, defaultImage), recorder.Events
	b.Reconciler.Clock, b.Reconciler.Keeper.Clock = b.clock, b.clock
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// look runs the loop once, a minute after the last time, and returns how it ended.
func (b *bench) look() (ctrl.Result, error) {
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	return b.lookAtOnce()
}

// lookAtOnce runs the loop once, at the same time as the last.
func (b *bench) lookAtOnce() (ctrl.Result, error) {
	return b.Reconciler.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: b.key})
}

// reconcile runs the loop once, without an error, and returns how many writes it sent.
func (b *bench) reconcile() int64 {
	b.t.Helper()
	before := b.writes()
	_, err := b.look()
	b.must(err)
	return b.writes() - before
}

// told are the events that were recorded since the last call, as "type reason".
func (b *bench) told() (all []string) {
	for len(b.events) > 0 {
		words := strings.Fields(<-b.events)
		all = append(all, words[0]+" "+words[1])
	}
	return all
}

func (b *bench) tells(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.told()); diff != "" {
		b.t.Error("events:", diff)
	}
}

func get[T client.Object](b *bench, obj T) T {
	b.t.Helper()
	b.must(b.Get(b.t.Context(), b.key, obj))
	return obj
}

func (b *bench) memcached() *cachev1alpha1.Memcached {
	b.t.Helper()
	return get(b, &cachev1alpha1.Memcached{})
}
func (b *bench) pods() *appsv1.Deployment    { b.t.Helper(); return get(b, &appsv1.Deployment{}) }
func (b *bench) service() *corev1.Service    { b.t.Helper(); return get(b, &corev1.Service{}) }
func (b *bench) container() corev1.Container { return b.pods().Spec.Template.Spec.Containers[0] }

// edit changes an object as somebody else would.
func edit[T client.Object](b *bench, obj T, change func(T)) {
	b.t.Helper()
	get(b, obj)
	change(obj)
	b.must(b.Update(b.t.Context(), obj))
}

// ask changes the spec.
func (b *bench) ask(change func(*cachev1alpha1.MemcachedSpec)) {
	b.t.Helper()
	edit(b, &cachev1alpha1.Memcached{}, func(m *cachev1alpha1.Memcached) { change(&m.Spec) })
}

func (b *bench) condition(kind string) metav1.Condition {
	b.t.Helper()
	c := meta.FindStatusCondition(b.memcached().Status.Conditions, kind)
	if c == nil {
		b.t.Fatalf("there is no condition %s", kind)
	}
	return *c
}

// is checks "status reason" of a condition.
func (b *bench) is(kind, want string) {
	b.t.Helper()
	if c := b.condition(kind); string(c.Status)+" "+c.Reason != want {
		b.t.Errorf("%s is %s %s (%s), want %s", kind, c.Status, c.Reason, c.Message, want)
	}
}

// deploy plays the Deployment controller, which envtest lacks: so many pods are ready, all by default.
func (b *bench) deploy(ready ...int32) {
	b.t.Helper()
	d := b.pods()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if len(ready) > 0 {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready[0], ready[0]
	}
	b.must(b.Status().Update(b.t.Context(), d))
}

// complete brings the Memcached to where all is as it shall be.
func (b *bench) complete() {
	b.t.Helper()
	b.reconcile()
	b.deploy()
	b.reconcile()
	b.is(owned.ConditionProgressing, "False Complete")
	b.told()
}
