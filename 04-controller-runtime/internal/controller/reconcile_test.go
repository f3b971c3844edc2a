package controller_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// These tests call Reconcile by hand on a real API server, with a client that reads from it directly: without a cache,
// each step can be judged at once.

var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil },
		filepath.Join("..", "..", "config", "crd")))
}

// fixture is a namespace with a MyWeb and a reconciler behind a wire. Time passes only between reconciles.
type fixture struct {
	t testing.TB
	client.WithWatch
	reconcile.Reconciler
	client   client.WithWatch // of the operator
	recorder events.EventRecorder
	*wire
	key    client.ObjectKey
	clock  *clocktesting.FakePassiveClock
	events chan string
}

// newFixture applies the original sample, with the given changes, in a namespace that belongs to the test.
func newFixture(t testing.TB, change ...func(*webv1.MyWeb)) *fixture {
	t.Helper()
	b := &fixture{t: t, wire: &wire{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	var err error
	b.WithWatch, err = client.NewWithWatch(config, client.Options{})
	b.must(err)
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { b.next = next; return b.wire })
	own, err := client.NewWithWatch(counted, client.Options{})
	b.must(err)
	recorder := events.NewFakeRecorder(100)
	b.client, b.recorder, b.events = interceptor.NewClient(own, interceptor.Funcs{List: listByIndex}), recorder, recorder.Events
	b.restart()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	b.must(b.Create(t.Context(), namespace))
	web := testenv.ReadManifest[webv1.MyWeb](t, "..", "..", "config", "samples", "myweb.yaml")
	web.Namespace, web.Spec.NodePortNumber = namespace.Name, nil // ports belong to the whole cluster
	for _, f := range change {
		f(web)
	}
	b.must(b.Create(t.Context(), web))
	b.key = client.ObjectKeyFromObject(web)
	return b
}

// restart makes a reconciler that remembers nothing.
func (b *fixture) restart() {
	h := operator.NewHardening(b.client, b.WithWatch)
	h.Clock = b.clock
	b.Reconciler = operator.Compose(h, b.recorder)
}

// listByIndex answers a list from the API server that a cache would answer from its index of node ports.
func listByIndex(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	services, ok := list.(*corev1.ServiceList)
	if !ok {
		return c.List(ctx, list, opts...)
	}
	asked := (&client.ListOptions{}).ApplyOptions(opts).FieldSelector
	if err := c.List(ctx, services); err != nil {
		return err
	}
	services.Items = slices.DeleteFunc(services.Items, func(s corev1.Service) bool {
		return !slices.ContainsFunc(s.Spec.Ports, func(port corev1.ServicePort) bool {
			return asked.Matches(fields.Set{"heldNodePort": strconv.Itoa(int(port.NodePort))})
		})
	})
	return nil
}

func (b *fixture) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// reconcileLater reconciles once, a minute after the last time, and returns how it ended.
func (b *fixture) reconcileLater() (ctrl.Result, error) {
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	return b.reconcileNow()
}

// reconcileNow reconciles once, at the same time as the last.
func (b *fixture) reconcileNow() (ctrl.Result, error) {
	return b.Reconciler.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: b.key})
}

// reconciledNow reconciles once, at the same time as the last, without an error.
func (b *fixture) reconciledNow() {
	b.t.Helper()
	_, err := b.reconcileNow()
	b.must(err)
}

// reconciled reconciles a minute later, without an error, and returns how many writes that sent.
func (b *fixture) reconciled() int64 {
	b.t.Helper()
	before := b.writes()
	_, err := b.reconcileLater()
	b.must(err)
	return b.writes() - before
}

// eventually waits until something has happened.
func (b *fixture) eventually(done func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("it did not happen within 20 s")
		}
	}
}

// recorded returns the events that were recorded since the last call, as "type reason".
func (b *fixture) recorded() (all []string) {
	for len(b.events) > 0 {
		words := strings.Fields(<-b.events)
		all = append(all, words[0]+" "+words[1])
	}
	return all
}

// intercept steps between the reconciler and its client.
func (b *fixture) intercept(funcs interceptor.Funcs) {
	b.client = interceptor.NewClient(b.client, funcs)
	b.restart()
}

func get[T client.Object](b *fixture, obj T) T {
	b.t.Helper()
	b.must(b.WithWatch.Get(b.t.Context(), b.key, obj))
	return obj
}

// edit changes an object as another client would.
func edit[T client.Object](b *fixture, obj T, change func(T)) {
	b.t.Helper()
	get(b, obj)
	change(obj)
	b.must(b.WithWatch.Update(b.t.Context(), obj))
}

func (b *fixture) condition(kind string) metav1.Condition {
	b.t.Helper()
	c := meta.FindStatusCondition(get(b, &webv1.MyWeb{}).Status.Conditions, kind)
	if c == nil {
		b.t.Fatalf("there is no condition %s", kind)
	}
	return *c
}

func TestAStatusThatBecameZeroIsRead(t *testing.T) {
	b := newFixture(t)
	b.reconciled()
	b.roll(1)
	b.reconciled()
	d := get(b, &appsv1.Deployment{})
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	b.must(b.WithWatch.Status().Update(t.Context(), d))
	stale := true // the Deployment in the cache still has a ready pod when the answer has none
	b.intercept(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if pods, ok := obj.(*appsv1.Deployment); ok && stale {
				pods.Status.ReadyReplicas, pods.Spec.Replicas, stale = 1, new(int32(9)), false
			}
			return err
		},
	})
	b.reconciled()
	if n := get(b, &webv1.MyWeb{}).Status.ReadyReplicas; n != 0 {
		t.Errorf("no pod is ready, status reports %d", n)
	}
}

func TestAConflictThatAppearsBetweenObserveAndApplyIsNotChanged(t *testing.T) {
	for _, kind := range []string{"ConfigMap", "Deployment", "Service"} {
		for name, exists := range map[string]bool{"a child was missing": false, "a child was swapped": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				b := newFixture(t)
				unmanaged := mywebtest.Unmanaged(kind, b.key.Namespace, b.key.Name)
				if exists {
					b.reconciled()
					edit(b, &webv1.MyWeb{}, func(w *webv1.MyWeb) {
						w.Spec = webv1.MyWebSpec{Image: "new", PageContentHTML: new("new"), NodePortNumber: new(freePort())}
					})
				}
				b.intercept(interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
						opts ...client.ApplyOption) error {
						if *obj.(interface{ GetKind() *string }).GetKind() == kind {
							if exists {
								b.must(b.Delete(ctx, mywebtest.Unmanaged(kind, b.key.Namespace, b.key.Name)))
							}
							b.must(b.Create(ctx, unmanaged))
						}
						return c.Apply(ctx, obj, opts...)
					},
				})
				if result, err := b.reconcileLater(); result.RequeueAfter == 0 || err != nil {
					t.Errorf("the write was refused, Reconcile returned %+v, %v; want to reconcile again", result, err)
				}
				version := unmanaged.GetResourceVersion()
				if now := get(b, unmanaged); now.GetResourceVersion() != version || len(now.GetOwnerReferences()) > 0 {
					t.Error("the unmanaged object was changed")
				}
			})
		}
	}
}

func TestTheCoreMayAskForAnotherReconcile(t *testing.T) {
	b := newFixture(t)
	conflict := apierrors.NewConflict(schema.GroupResource{}, "web", nil)
	for name, test := range map[string]struct {
		result    ctrl.Result
		err       error
		from, to  time.Duration
		wantError bool
	}{
		"in an hour":                        {result: ctrl.Result{RequeueAfter: time.Hour}, from: time.Hour, to: time.Hour},
		"in an hour, and after a conflict":  {ctrl.Result{RequeueAfter: time.Hour}, conflict, 1, time.Minute, false},
		"soon, and hardening asks for more": {ctrl.Result{RequeueAfter: 1}, hardening.RequeueAfter(time.Hour), 1, 1, false},
		"after a failure":                   {ctrl.Result{RequeueAfter: time.Hour}, errors.New("down"), 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			core := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return test.result, test.err })
			result, err := operator.NewHardening(b.client, b.WithWatch).Reconciler(core).
				Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key})
			if after := result.RequeueAfter; after < test.from || after > test.to || (err != nil) != test.wantError {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}
