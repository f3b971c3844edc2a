package memcached

import (
	"context"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// A fixture is a store in memory with Memcacheds, and counts the writes.
type fixture struct {
	*testing.T
	client.Client
	writes int
}

func newFixture(t *testing.T, names ...string) *fixture {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cachev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{T: t}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&cachev1alpha1.Memcached{}, &appsv1.Deployment{})
	for _, name := range names {
		builder.WithObjects(&cachev1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", Generation: 1},
			Spec:       cachev1alpha1.MemcachedSpec{Size: 3, ContainerPort: 11211, Image: "memcached:1.6"}})
	}
	f.Client = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			f.writes++
			return c.Update(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			f.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	return f
}

func (f *fixture) reconcile(name string) {
	f.Helper()
	key := client.ObjectKey{Namespace: "shop", Name: name}
	result, err := (&Reconciler{f.Client}).Reconcile(f.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		f.Fatalf("Reconcile failed: %v", err)
	}
	if result.RequeueAfter != 0 {
		f.Errorf("Reconcile asks to be called again in %s: a watch reports every change", result.RequeueAfter)
	}
}

// get reads an object that must exist.
func get[T client.Object](f *fixture, name string, object T) T {
	f.Helper()
	if err := f.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: name}, object); err != nil {
		f.Fatal(err)
	}
	return object
}

func TestDeployment(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.reconcile("a")
	f.reconcile("b")
	a, b := get(f, "a", &appsv1.Deployment{}), get(f, "b", &appsv1.Deployment{})
	if a.Spec.Replicas == nil || *a.Spec.Replicas != 3 {
		t.Error("the Memcached has size 3, its Deployment has not")
	}
	if maps.Equal(a.Spec.Selector.MatchLabels, b.Spec.Selector.MatchLabels) {
		t.Errorf("two Memcacheds select the same pods: %v", a.Spec.Selector.MatchLabels)
	}
	if owner := metav1.GetControllerOf(a); owner == nil || owner.Name != "a" {
		t.Error("no Memcached controls the Deployment: it stays when the Memcached is deleted")
	}
	m := get(f, "a", &cachev1alpha1.Memcached{})
	m.Spec.Size = 5
	if err := f.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	f.reconcile("a")
	if a = get(f, "a", a); *a.Spec.Replicas != 5 {
		t.Errorf("the size was changed to 5, the Deployment still has %d replicas", *a.Spec.Replicas)
	}
	f.writes = 0
	if f.reconcile("a"); f.writes > 0 {
		t.Error("nothing differed, and the reconcile wrote something")
	}
}

// available returns the condition after a reconcile, with a Deployment that reports ready pods for a generation.
func (f *fixture) available(ready int32, generation int64) metav1.ConditionStatus {
	f.Helper()
	d := get(f, "a", &appsv1.Deployment{})
	d.Status = appsv1.DeploymentStatus{ReadyReplicas: ready, ObservedGeneration: generation}
	if err := f.Status().Update(f.Context(), d); err != nil {
		f.Fatal(err)
	}
	f.reconcile("a")
	m := get(f, "a", &cachev1alpha1.Memcached{})
	c := meta.FindStatusCondition(m.Status.Conditions, "Available")
	if c == nil {
		f.Fatal("the Memcached has no condition Available")
	}
	return c.Status
}

func TestAvailable(t *testing.T) {
	f := newFixture(t, "a")
	f.reconcile("a")
	d := get(f, "a", &appsv1.Deployment{})
	d.Generation = 2
	if err := f.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if f.available(0, 2) != metav1.ConditionFalse {
		t.Error("no pod is ready, and the Memcached is Available")
	}
	if f.available(3, 1) != metav1.ConditionFalse {
		t.Error("the Deployment reports about its generation before, and the Memcached is Available")
	}
	if f.available(3, 2) != metav1.ConditionTrue {
		t.Error("all pods are ready, and the Memcached is not Available")
	}
	if m := get(f, "a", &cachev1alpha1.Memcached{}); m.Status.Conditions[0].ObservedGeneration != m.Generation {
		t.Error("the condition does not say of which generation it speaks (observedGeneration)")
	}
	f.writes = 0
	if f.reconcile("a"); f.writes > 0 {
		t.Error("nothing changed, and the status was written again")
	}
}
