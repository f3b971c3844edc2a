package memcached

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/testenv"
)

// A fixture is a real API server with Memcacheds. No controller runs in it, so a Deployment has the status that the
// test writes.
type fixture struct {
	*testing.T
	client.Client
	cfg *rest.Config
	// operator is the client of the Reconciler, writes are its requests that are not reads.
	operator client.Client
	writes   []string
}

// crdFolder returns the folder of the generated CRDs. A test in the work folder of a reader finds it in the checkout.
func crdFolder() string {
	if root := os.Getenv("WORKSHOP_ROOT"); root != "" {
		return filepath.Join(root, "05-operator-sdk", "memcached-operator", "config", "crd", "bases")
	}
	return filepath.Join("..", "..", "config", "crd", "bases")
}

func newFixture(t *testing.T, names ...string) *fixture {
	ctrl.SetLogger(logr.Discard())
	f := &fixture{T: t, cfg: testenv.NewAPIServer(t, crdFolder())}
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme.Scheme))
	counted := rest.CopyConfig(f.cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				f.writes = append(f.writes, request.Method+" "+request.URL.Path)
			}
			return next.RoundTrip(request)
		})
	})
	var err error
	if f.Client, err = client.New(f.cfg, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if f.operator, err = client.New(counted, client.Options{}); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	for _, name := range names {
		objects = append(objects, &cachev1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       cachev1alpha1.MemcachedSpec{Size: 3, ContainerPort: 11311, Image: "memcached:1.6"}})
	}
	for _, object := range objects {
		if err := f.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// reconcile calls Reconcile once, and returns the writes.
func (f *fixture) reconcile(name string) (writes []string) {
	f.Helper()
	f.writes = nil
	key := client.ObjectKey{Namespace: "shop", Name: name}
	result, err := (&Reconciler{f.operator}).Reconcile(f.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		f.Fatalf("Reconcile failed: %v", err)
	}
	if !result.IsZero() {
		f.Fatalf("Reconcile asks to be called again in %s: a watch reports every change", result.RequeueAfter)
	}
	return f.writes
}

// get reads an object that must exist.
func get[T client.Object](f *fixture, name string, object T) T {
	f.Helper()
	if err := f.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: name}, object); err != nil {
		f.Fatal(err)
	}
	return object
}

// change changes the spec of a Memcached, as a user does.
func (f *fixture) change(name string, change func(*cachev1alpha1.MemcachedSpec)) {
	f.Helper()
	m := get(f, name, &cachev1alpha1.Memcached{})
	change(&m.Spec)
	if err := f.Update(f.Context(), m); err != nil {
		f.Fatal(err)
	}
}

func TestDeployment(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.reconcile("a")
	f.reconcile("b")
	a, b := get(f, "a", &appsv1.Deployment{}), get(f, "b", &appsv1.Deployment{})
	if *a.Spec.Replicas != 3 {
		t.Errorf("the Memcached has size 3, its Deployment has %d replicas", *a.Spec.Replicas)
	}
	if selects(t, a, b) || selects(t, b, a) {
		t.Errorf("two Memcacheds select the same pods: %v", a.Spec.Selector.MatchLabels)
	}
	if owner := metav1.GetControllerOf(a); owner == nil || owner.Name != "a" {
		t.Error("no Memcached controls the Deployment: it stays when the Memcached is deleted")
	}
	if containers := a.Spec.Template.Spec.Containers; len(containers) != 1 || containers[0].Image != "memcached:1.6" {
		t.Error("the Deployment must have one container, with the image of the Memcached")
	} else if ports := containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 11311 {
		t.Errorf("the container must have one port, the containerPort 11311 of the Memcached; it has %v", ports)
	}
	f.change("a", func(spec *cachev1alpha1.MemcachedSpec) { spec.Size = 5 })
	f.reconcile("a")
	if a = get(f, "a", a); *a.Spec.Replicas != 5 {
		t.Errorf("the size was changed to 5, the Deployment still has %d replicas", *a.Spec.Replicas)
	}
	if writes := f.reconcile("a"); len(writes) > 0 {
		t.Errorf("nothing differed, and the reconcile wrote something: %s", writes)
	}
	if !t.Failed() {
		f.owns("a")
	}
}

// selects reports whether the selector of a Deployment matches the pods of another.
func selects(t *testing.T, d, other *appsv1.Deployment) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(other.Spec.Template.Labels))
}

// owns runs the controller, deletes a Deployment, and waits until it comes back. It does so twice: the controller
// reconciles every Memcached once at its start, and this call may be the one that finds the first deletion.
func (f *fixture) owns(name string) {
	f.Helper()
	mgr, err := ctrl.NewManager(f.cfg, ctrl.Options{Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}})
	if err != nil {
		f.Fatal(err)
	}
	if err := (&Reconciler{mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		f.Fatalf("SetupWithManager failed: %v", err)
	}
	testenv.Run(f.T, mgr.Start)
	for range 2 {
		old := get(f, name, &appsv1.Deployment{})
		if err := f.Delete(f.Context(), old); err != nil {
			f.Fatal(err)
		}
		err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, 10*time.Second, true,
			func(context.Context) (bool, error) {
				d := &appsv1.Deployment{}
				err := f.Get(f.Context(), client.ObjectKeyFromObject(old), d)
				return err == nil && d.UID != old.UID, client.IgnoreNotFound(err)
			})
		if wait.Interrupted(err) {
			f.Fatal("a user deleted the Deployment, and it did not come back within 10s: no watch reports its changes")
		} else if err != nil {
			f.Fatal(err)
		}
	}
}

// available gives the Deployment a status, reconciles, and returns the condition. The status is that of an earlier
// generation: behind is the number of generations since.
func (f *fixture) available(behind int64, status appsv1.DeploymentStatus) metav1.Condition {
	f.Helper()
	d := get(f, "a", &appsv1.Deployment{})
	d.Status = status
	d.Status.ObservedGeneration = d.Generation - behind
	if err := f.Status().Update(f.Context(), d); err != nil {
		f.Fatal(err)
	}
	f.reconcile("a")
	m := get(f, "a", &cachev1alpha1.Memcached{})
	c := meta.FindStatusCondition(m.Status.Conditions, "Available")
	if c == nil {
		f.Fatal("the Memcached has no condition Available")
	}
	if c.ObservedGeneration != m.Generation {
		f.Fatal("the condition does not say of which generation it speaks (observedGeneration)")
	}
	return *c
}

// pods returns the status of a Deployment with pods, some of them updated (of the current generation), some ready.
func pods(all, updated, ready int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready,
		AvailableReplicas: ready, UnavailableReplicas: all - ready}
}

// TestAvailable follows a Deployment with three pods through its creation and the rollout of another image.
func TestAvailable(t *testing.T) {
	f := newFixture(t, "a")
	f.reconcile("a")
	for _, step := range []struct {
		image  string
		behind int64
		status appsv1.DeploymentStatus
		want   metav1.ConditionStatus
		wrong  string
	}{
		{"memcached:1.6", 0, pods(3, 3, 0), metav1.ConditionFalse, "no pod is ready, and the Memcached is Available"},
		{"memcached:1.6", 0, pods(3, 3, 3), metav1.ConditionTrue, "all pods are ready, and the Memcached is not Available"},
		{"memcached:1.7", 1, pods(3, 3, 3), metav1.ConditionFalse,
			"the Deployment reports about its generation before, and the Memcached is Available"},
		{"memcached:1.7", 0, pods(4, 1, 3), metav1.ConditionFalse,
			"3 pods are ready, 1 pod is of the current generation, and the Memcached is Available"},
		{"memcached:1.7", 0, pods(4, 3, 3), metav1.ConditionFalse,
			"4 pods exist, 3 are of the current generation, and 3 are ready. " +
				"One of the ready pods is old, and the Memcached is Available"},
		{"memcached:1.7", 0, pods(3, 3, 3), metav1.ConditionTrue,
			"all pods of the current generation are ready, and the Memcached is not Available"},
	} {
		f.change("a", func(spec *cachev1alpha1.MemcachedSpec) { spec.Image = step.image })
		f.reconcile("a")
		if got := f.available(step.behind, step.status); got.Status != step.want {
			t.Fatalf("%s (reason %s, message %q)", step.wrong, got.Reason, got.Message)
		}
	}
	if writes := f.reconcile("a"); len(writes) > 0 {
		t.Errorf("nothing changed, and the status was written again: %s", writes)
	}
}
