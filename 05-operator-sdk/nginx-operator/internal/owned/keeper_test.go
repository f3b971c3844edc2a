package owned

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/internal/testenv"
)

// These tests keep children on a real API server. They lie in one of the two projects only, for they import
// testenv by the project's name.

var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	cfg, stop, err := testenv.StartAPIServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config = cfg
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// A bench is an owner in a namespace of the test's own, with a keeper that counts what it writes.
type bench struct {
	t *testing.T
	client.Client
	keeper *Keeper
	owner  *policyv1.PodDisruptionBudget
	clock  *clocktesting.FakePassiveClock
	writes int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(noon.Time)}
	plain, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	b.must(err)
	b.Client = plain
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "owned-"}}
	b.must(b.Create(t.Context(), namespace))
	b.owner = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "site"}}
	b.must(b.Create(t.Context(), b.owner))
	b.keeper = keeper()
	b.keeper.Clock = b.clock
	b.keeper.Client = interceptor.NewClient(plain, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			b.writes++
			return c.Apply(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			b.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// wanted are the children, the Deployment changed.
func (b *bench) wanted(change ...func(*appsv1ac.DeploymentApplyConfiguration)) []*Child {
	here := func(d *appsv1ac.DeploymentApplyConfiguration) { d.WithNamespace(b.owner.Namespace) }
	return []*Child{
		pods(append(change, here)...),
		Service(corev1ac.Service("site", b.owner.Namespace).WithLabels(map[string]string{"app": "site"}).WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{"app": "site"}).
			WithPorts(corev1ac.ServicePort().WithName("p").WithPort(80).WithProtocol("TCP")))),
	}
}

// keep keeps the children, a minute after the last time, and returns how many writes that took.
func (b *bench) keep(change ...func(*appsv1ac.DeploymentApplyConfiguration)) (writes int, err error) {
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	before := b.writes
	err = b.keeper.Keep(b.t.Context(), b.owner, true, b.wanted(change...)...)
	return b.writes - before, err
}

// kept keeps the children, without an error and with so many writes.
func (b *bench) kept(want int, what string) {
	b.t.Helper()
	if n, err := b.keep(); err != nil || n != want {
		b.t.Errorf("%s: %d writes, want %d: %v", what, n, want, err)
	}
}

func get[T client.Object](b *bench, obj T) T {
	b.t.Helper()
	b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(b.owner), obj))
	return obj
}

// edit changes a child as somebody else would.
func edit[T client.Object](b *bench, obj T, change func(T)) {
	b.t.Helper()
	get(b, obj)
	change(obj)
	b.must(b.Update(b.t.Context(), obj))
}

// foreign is an object of somebody else with the name of a child.
func (b *bench) foreign(kind string) client.Object {
	m := metav1.ObjectMeta{Namespace: b.owner.Namespace, Name: b.owner.Name}
	if kind == "Service" {
		return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	labels := map[string]string{"app": "other"}
	return &appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
}

func reason(err error) string {
	what, _ := errors.AsType[Obstacle](err)
	return what.Reason
}

func TestChildrenAreMadeOnceAndChangedInPlace(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	b.kept(0, "all is there")
	before := get(b, &appsv1.Deployment{})
	if !metav1.IsControlledBy(before, b.owner) || !strings.HasPrefix(before.Annotations["policy/applied"], string(b.owner.UID)+"/") {
		t.Errorf("the child does not say whose it is: %v %v", before.OwnerReferences, before.Annotations)
	}
	children := b.wanted(replicas(3))
	b.must(b.keeper.Keep(t.Context(), b.owner, true, children...))
	live := b.keeper.Pods(b.owner, children...)
	if live.UID != before.UID || *live.Spec.Replicas != 3 || *get(b, &appsv1.Deployment{}).Spec.Replicas != 3 {
		t.Errorf("Live is %s with %d replicas", live.UID, *live.Spec.Replicas)
	}
}

func TestFieldsOfOthersStayAndOwnOnesAreRestored(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Labels["team"], d.Annotations["note"] = "blue", "mine"
		d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "a-sidecar", Image: "proxy"}}, d.Spec.Template.Spec.Containers...)
	})
	b.kept(0, "others changed what is theirs")
	edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
	b.kept(1, "a field of ours was changed")
	if d := get(b, &appsv1.Deployment{}); *d.Spec.Replicas != 1 || d.Labels["team"] != "blue" || d.Annotations["note"] != "mine" || len(d.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("the Deployment is %+v", d)
	}
	edit(b, &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
	b.kept(2, "an apply would leave two ports of one name, so it is refused first")
	if ports := get(b, &corev1.Service{}).Spec.Ports; len(ports) != 1 || ports[0].Port != 80 {
		t.Errorf("the ports are %+v", ports)
	}
	b.kept(0, "restored")
}

func TestADeletedChildComesBackOnce(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		b.must(b.Delete(t.Context(), get(b, obj)))
		b.kept(1, fmt.Sprintf("%T is gone", obj))
		b.kept(0, fmt.Sprintf("%T is back", obj))
	}
}

func TestAnObjectOfSomebodyElseIsNeverChanged(t *testing.T) {
	for _, kind := range []string{"Deployment", "Service"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			foreign := b.foreign(kind)
			b.must(b.Create(t.Context(), foreign))
			version := foreign.GetResourceVersion()
			if n, err := b.keep(); n != 0 || reason(err) != ReasonResourceConflict || !strings.Contains(err.Error(), kind+" site") {
				t.Errorf("%d writes, %v", n, err)
			}
			if get(b, foreign); foreign.GetResourceVersion() != version {
				t.Error("it was changed")
			}
			b.must(b.Delete(t.Context(), foreign))
			b.kept(2, "it is gone")
		})
	}
}

func TestAnObstacleThatAppearsBetweenLookAndWriteIsNotChanged(t *testing.T) {
	for _, kind := range []string{"Deployment", "Service"} {
		for name, exists := range map[string]bool{"a child was missing": false, "a child was swapped": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				b := newBench(t)
				foreign := b.foreign(kind)
				if exists {
					b.kept(2, "nothing there")
					edit(b, b.foreign(kind), func(o client.Object) { o.SetLabels(nil) })
				}
				b.keeper.Client = interceptor.NewClient(b.keeper.Client.(client.WithWatch), interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
						if *obj.(interface{ GetKind() *string }).GetKind() == kind {
							if exists {
								b.must(b.Delete(ctx, b.foreign(kind)))
							}
							b.must(b.Create(ctx, foreign))
						}
						return c.Apply(ctx, obj, opts...)
					},
				})
				_, err := b.keep()
				if result, err := b.keeper.End(ctrl.Request{}, 0, err); result.RequeueAfter == 0 || err != nil {
					t.Errorf("the write was refused, and the end is %+v, %v; want to look again", result, err)
				}
				version := foreign.GetResourceVersion()
				if now := get(b, foreign); now.GetResourceVersion() != version || len(now.GetOwnerReferences()) > 0 {
					t.Error("the foreign object was changed")
				}
			})
		}
	}
}

func TestAChildThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	edit(b, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = []string{"example.com/keep"} })
	b.must(b.Delete(t.Context(), get(b, &corev1.Service{})))
	n, err := b.keep()
	if what, _ := errors.AsType[Obstacle](err); n != 0 || what.Reason != ReasonWaitingForDeletion || !what.Passing {
		t.Errorf("%d writes, %v", n, err)
	}
	edit(b, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = nil })
	b.kept(1, "it is gone")
}

func TestAPassingObstacleDoesNotHideOneThatStays(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/keep"} })
	b.must(b.Delete(t.Context(), get(b, &appsv1.Deployment{})))
	b.must(b.Delete(t.Context(), get(b, &corev1.Service{})))
	b.must(b.Create(t.Context(), b.foreign("Service")))
	if _, err := b.keep(); reason(err) != ReasonResourceConflict {
		t.Errorf("got %v", err)
	}
	children := b.wanted()
	if err := b.keeper.Look(t.Context(), b.owner, children...); reason(err) != ReasonResourceConflict || children[0].Live == nil || children[1].Live == nil {
		t.Errorf("Look returned %v and %v, %v", err, children[0].Live, children[1].Live)
	}
	edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Finalizers = nil })
}

func TestWhatIsLeftOfAPredecessorIsWaitedFor(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	b.must(b.Delete(t.Context(), b.owner))
	b.owner = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.owner.Namespace, Name: "site"}}
	b.must(b.Create(t.Context(), b.owner))
	if n, err := b.keep(); n != 0 || reason(err) != ReasonWaitingForDeletion {
		t.Errorf("%d writes, %v: envtest has no garbage collector", n, err)
	}
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		b.must(b.Delete(t.Context(), get(b, obj)))
	}
	b.kept(2, "they are gone")
}

func TestAChildThatLostItsOwnerIsRebuilt(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		before := get(b, obj).GetUID()
		edit(b, obj, func(o client.Object) { o.SetOwnerReferences(nil); o.SetLabels(nil) })
		b.kept(1, fmt.Sprintf("%T lost its owner", obj))
		if get(b, obj); !metav1.IsControlledBy(obj, b.owner) || obj.GetUID() != before || obj.GetLabels()["app"] == "" {
			t.Errorf("%T was not rebuilt: %v", obj, obj.GetOwnerReferences())
		}
	}
}

func TestRestoringIsBoundedAndFollowingIsNot(t *testing.T) {
	b := newBench(t)
	b.kept(2, "nothing there")
	b.keeper.Forget(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.owner)})
	for i := range restoreBurst + 3 {
		edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(i + 2)) })
		b.clock.SetTime(b.clock.Now().Add(-time.Minute)) // at the same time as the last
		n, err := b.keep()
		wait, _ := errors.AsType[later](err)
		if limited := i >= restoreBurst; (n == 0) != limited || (time.Duration(wait) == restoreEvery) != limited {
			t.Errorf("restoring number %d: %d writes, then %v", i+1, n, err)
		}
	}
	b.clock.SetTime(b.clock.Now().Add(-time.Minute))
	if n, err := b.keep(replicas(3)); n != 1 || err != nil {
		t.Errorf("the owner's own change has to wait: %d writes, %v", n, err)
	}
	b.keeper.Forget(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.owner)})
	b.clock.SetTime(b.clock.Now().Add(-time.Minute))
	edit(b, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) })
	if n, err := b.keep(replicas(3)); n != 1 || err != nil {
		t.Errorf("the account was closed: %d writes, %v", n, err)
	}
}

func TestAQuotaIsAnObstacleThatNobodyWatches(t *testing.T) {
	b := newBench(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.owner.Namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}}}
	b.must(b.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	b.must(b.Status().Update(t.Context(), quota)) // as the quota controller would
	_, err := b.keep()
	if what, _ := errors.AsType[Obstacle](err); what.Reason != ReasonChildRejected || !what.Unwatched || !strings.Contains(what.Message, "quota") {
		t.Errorf("got %v", err)
	}
	b.must(b.Delete(t.Context(), quota))
	gomega.NewWithT(t).Eventually(func() error { _, err := b.keep(); return err }, "20s", "100ms").
		Should(gomega.Succeed(), "the API server's own cache of quotas is a moment behind")
}

func TestANamespaceThatIsGoingIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.must(b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.owner.Namespace}}))
	_, err := b.keep()
	if result, end := b.keeper.End(ctrl.Request{}, 0, err); err == nil || end != nil || result != (ctrl.Result{}) {
		t.Errorf("%v became %+v, %v", err, result, end)
	}
}

func TestWhatTheAPIServerChangesAtOnceIsAnError(t *testing.T) {
	b := newBench(t)
	b.keeper.Client = interceptor.NewClient(b.keeper.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			err := c.Apply(ctx, obj, opts...)
			if d, ok := obj.(*appsv1ac.DeploymentApplyConfiguration); ok {
				d.Spec.WithReplicas(9) // as a mutating webhook would
			}
			return err
		},
	})
	if _, err := b.keep(); err == nil || !strings.Contains(err.Error(), "something there (a webhook?) changed it at once") {
		t.Errorf("got %v", err)
	}
}

// A watch may hang after the keeper wrote, and the client waits for it.
func TestACacheThatDoesNotCatchUpHoldsAWorkerForASecondOnly(t *testing.T) {
	b := newBench(t)
	b.keeper.Client = interceptor.NewClient(b.keeper.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	began := time.Now()
	_, err := b.keep()
	if wait, _ := errors.AsType[later](err); time.Duration(wait) != unseen {
		t.Errorf("got %v, want to look again after %s", err, unseen)
	}
	if took := time.Since(began); took > 2*catchUp {
		t.Errorf("it waited %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the program ends
	if err := b.keeper.Get(ctx, client.ObjectKeyFromObject(b.owner), &corev1.Service{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// unwritable is a wanted child that no program can put into words.
type unwritable struct {
	metav1ac.ObjectMetaApplyConfiguration
}

func (unwritable) IsApplyConfiguration()        {}
func (unwritable) MarshalJSON() ([]byte, error) { return nil, errors.New("no words") }

func TestAFaultOfOurOwnIsNotTriedAgain(t *testing.T) {
	b := newBench(t)
	child := b.wanted()[0]
	child.want = unwritable{}
	err := b.keeper.Keep(t.Context(), b.owner, true, child)
	if !errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), "fault of the operator") || b.writes != 0 {
		t.Errorf("%d writes, %v", b.writes, err)
	}
}
