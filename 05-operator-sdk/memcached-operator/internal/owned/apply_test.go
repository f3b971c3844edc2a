package owned

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/memcached-operator/internal/testenv"
)

// These tests apply children on a real API server. `make examine FILE=scripts/lab/examine/memcached.yaml` disturbs the
// program: drift, quotas, policies, crashes.

var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil }))
}

// A fixture is an owner in a new namespace, with an Applier whose writes are counted.
type fixture struct {
	t *testing.T
	client.Client
	counted client.WithWatch
	applier Applier
	owner   *policyv1.PodDisruptionBudget
	writes  int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	plain, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	f.must(err)
	f.Client = plain
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "owned-"}}
	f.must(f.Create(t.Context(), namespace))
	f.owner = owner("")
	f.owner.Namespace = namespace.Name
	f.must(f.Create(t.Context(), f.owner))
	f.counted = interceptor.NewClient(plain, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
			f.writes++
			return c.Apply(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			f.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	f.use(f.counted)
	return f
}

// use gives the Applier another client.
func (f *fixture) use(c client.Client) {
	f.applier = Applier{Client: c, Owner: kind, FieldOwner: "applier"}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// children returns the children in their desired state, with a changed Deployment.
func (f *fixture) children(change ...func(*appsv1ac.DeploymentApplyConfiguration)) []*Child {
	here := func(d *appsv1ac.DeploymentApplyConfiguration) { d.WithNamespace(f.owner.Namespace) }
	app := map[string]string{"app": "site"}
	service := corev1ac.Service("site", f.owner.Namespace).WithLabels(app).WithSpec(corev1ac.ServiceSpec().
		WithSelector(app).
		WithPorts(corev1ac.ServicePort().WithName("p").WithPort(80).WithProtocol("TCP").
			WithTargetPort(intstr.FromString("p"))))
	return []*Child{deployment(append(change, here)...), Service(service)}
}

// apply observes and applies the children, and returns the number of writes.
func (f *fixture) apply(change ...func(*appsv1ac.DeploymentApplyConfiguration)) (writes int, err error) {
	before, children := f.writes, f.children(change...)
	if err = f.applier.Observe(f.t.Context(), f.owner, children...); err == nil {
		err = f.applier.Apply(f.t.Context(), children...)
	}
	return f.writes - before, err
}

// applied applies the children; it expects no error and this number of writes.
func (f *fixture) applied(want int, when string) {
	f.t.Helper()
	if n, err := f.apply(); err != nil || n != want {
		f.t.Errorf("%s: %d writes, want %d: %v", when, n, want, err)
	}
}

// reports applies the children; it expects a condition and this number of writes, and returns the message.
func (f *fixture) reports(reason string, writes int, change ...func(*appsv1ac.DeploymentApplyConfiguration)) string {
	f.t.Helper()
	n, err := f.apply(change...)
	problem := AsError(err)
	if problem == nil || problem.Reason != reason || problem.Transient || n != writes {
		f.t.Fatalf("got %d writes and %+v, want %d and %s", n, err, writes, reason)
	}
	return problem.Message
}

func get[T client.Object](f *fixture, obj T) T {
	f.t.Helper()
	f.must(f.Get(f.t.Context(), client.ObjectKeyFromObject(f.owner), obj))
	return obj
}

// edit changes a child as another client would.
func edit[T client.Object](f *fixture, obj T, change func(T)) {
	f.t.Helper()
	get(f, obj)
	change(obj)
	f.must(f.Update(f.t.Context(), obj))
}

// unmanaged returns an object that the owner does not control, with the name of a child.
func (f *fixture) unmanaged(kind string) client.Object {
	m := metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: f.owner.Name}
	if kind == "Service" {
		return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	labels := map[string]string{"app": "other"}
	return &appsv1.Deployment{ObjectMeta: m,
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
}

// kinds returns an empty object of each kind of child.
func kinds() []client.Object { return []client.Object{&appsv1.Deployment{}, &corev1.Service{}} }

func TestChildrenAreMadeOnceAndChangedInPlace(t *testing.T) {
	f := newFixture(t)
	f.applied(2, "no child exists")
	f.applied(0, "all children exist")
	before := get(f, &appsv1.Deployment{})
	if !metav1.IsControlledBy(before, f.owner) ||
		!strings.HasPrefix(before.Annotations["policy/applied"], string(f.owner.UID)+"/") {
		t.Errorf("the child does not name its owner: %v %v", before.OwnerReferences, before.Annotations)
	}
	children := f.children(replicas(3))
	f.must(f.applier.Observe(t.Context(), f.owner, children...))
	f.must(f.applier.Apply(t.Context(), children...))
	live := children[0].Live.(*appsv1.Deployment)
	if live.UID != before.UID || *live.Spec.Replicas != 3 || *get(f, &appsv1.Deployment{}).Spec.Replicas != 3 {
		t.Errorf("Live is %s with %d replicas", live.UID, *live.Spec.Replicas)
	}
}

func TestUnmanagedObjectsAreReportedAtOnceAndNeverChanged(t *testing.T) {
	f := newFixture(t)
	pods, service := f.unmanaged("Deployment"), f.unmanaged("Service")
	f.must(errors.Join(f.Create(t.Context(), pods), f.Create(t.Context(), service)))
	message := f.reports(ReasonResourceConflict, 0)
	if !strings.Contains(message, "Deployment site") || !strings.Contains(message, "Service site") {
		t.Errorf("two objects are in conflict, the message is %q", message)
	}
	f.must(f.Delete(t.Context(), pods))
	if message := f.reports(ReasonResourceConflict, 0); strings.Contains(message, "Deployment") {
		t.Errorf("only the Service is in conflict, the message is %q", message)
	}
	if version := service.GetResourceVersion(); get(f, service).GetResourceVersion() != version {
		t.Error("the Service was changed")
	}
	f.must(f.Delete(t.Context(), service))
	f.applied(2, "both are gone")
}

func TestAnObjectThatAppearsBetweenReadAndWriteIsNotChanged(t *testing.T) {
	for _, kind := range []string{"Deployment", "Service"} {
		for name, exists := range map[string]bool{"a child was missing": false, "a child was replaced": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				f := newFixture(t)
				unmanaged := f.unmanaged(kind)
				if exists {
					f.applied(2, "no child exists")
					edit(f, f.unmanaged(kind), func(o client.Object) { o.SetLabels(nil) })
				}
				f.use(interceptor.NewClient(f.counted, interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
						opts ...client.ApplyOption) error {
						if *obj.(interface{ GetKind() *string }).GetKind() == kind {
							if exists {
								f.must(f.Delete(ctx, f.unmanaged(kind)))
							}
							f.must(f.Create(ctx, unmanaged))
						}
						return c.Apply(ctx, obj, opts...)
					},
				}))
				// Another UID is an invalid change; hardening makes a conflict of it.
				if _, err := f.apply(); !apierrors.IsConflict(err) && (!exists || !apierrors.IsInvalid(err)) {
					t.Errorf("the write ended with %v, want a conflict", err)
				}
				version := unmanaged.GetResourceVersion()
				if now := get(f, unmanaged); now.GetResourceVersion() != version || len(now.GetOwnerReferences()) > 0 {
					t.Error("the object was changed")
				}
			})
		}
	}
}

func TestAChildHeldByAFinalizerIsReported(t *testing.T) {
	f := newFixture(t)
	f.applied(2, "no child exists")
	edit(f, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = []string{"example.com/keep"} })
	f.must(f.Delete(t.Context(), get(f, &corev1.Service{})))
	if message := f.reports(ReasonWaitingForDeletion, 0); !strings.Contains(message, "example.com/keep") {
		t.Errorf("the message does not name the finalizer: %q", message)
	}
	f.must(f.Delete(t.Context(), get(f, &appsv1.Deployment{})))
	f.must(f.Create(t.Context(), f.unmanaged("Deployment")))
	if message := f.reports(ReasonResourceConflict, 0); !strings.Contains(message, "example.com/keep") {
		t.Errorf("a conflict comes first, and hides nothing: %q", message)
	}
	f.must(f.Delete(t.Context(), get(f, &appsv1.Deployment{})))
	edit(f, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = nil })
	f.applied(2, "both are gone")
}

// renewOwner replaces the owner by a new one of the same name.
func (f *fixture) renewOwner() {
	f.must(f.Delete(f.t.Context(), f.owner))
	namespace := f.owner.Namespace
	f.owner = owner("")
	f.owner.Namespace = namespace
	f.must(f.Create(f.t.Context(), f.owner))
}

func TestChildrenOfADeletedOwnerAreWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.applied(2, "no child exists")
	f.renewOwner()
	n, err := f.apply() // envtest has no garbage collector
	if problem := AsError(err); n != 0 || problem == nil ||
		problem.Reason != ReasonWaitingForDeletion || !problem.Transient {
		t.Errorf("%d writes, %v", n, err)
	}
	for _, obj := range kinds() {
		f.must(f.Delete(t.Context(), get(f, obj)))
	}
	f.applied(2, "they are gone")
}

// kubectl delete --cascade=orphan leaves the children without an owner reference.
func TestOrphansAreReportedAndCanBeHandedOver(t *testing.T) {
	f := newFixture(t)
	f.applied(2, "no child exists")
	for _, obj := range kinds() {
		edit(f, obj, func(o client.Object) { o.SetOwnerReferences(nil) })
	}
	f.renewOwner()
	message := f.reports(ReasonResourceConflict, 0)
	if strings.Count(message, "was left behind by an earlier PodDisruptionBudget") != 2 ||
		!strings.Contains(message, string(f.owner.UID)) {
		t.Errorf("the message is %q", message)
	}
	uid := get(f, &appsv1.Deployment{}).UID
	for _, obj := range kinds() { // as the message says
		edit(f, obj, func(o client.Object) { o.SetAnnotations(map[string]string{"policy/applied": string(f.owner.UID)}) })
	}
	f.applied(2, "they were handed over")
	if d := get(f, &appsv1.Deployment{}); d.UID != uid || !metav1.IsControlledBy(d, f.owner) {
		t.Errorf("the Deployment was not adopted: %v", d.OwnerReferences)
	}
}

func TestAChildThatLostItsOwnerIsRebuilt(t *testing.T) {
	f := newFixture(t)
	f.applied(2, "no child exists")
	for _, obj := range kinds() {
		before := get(f, obj).GetUID()
		edit(f, obj, func(o client.Object) { o.SetOwnerReferences(nil); o.SetLabels(nil) })
		f.applied(1, fmt.Sprintf("%T lost its owner", obj))
		if get(f, obj); !metav1.IsControlledBy(obj, f.owner) || obj.GetUID() != before || obj.GetLabels()["app"] == "" {
			t.Errorf("%T was not rebuilt: %v", obj, obj.GetOwnerReferences())
		}
	}
}
