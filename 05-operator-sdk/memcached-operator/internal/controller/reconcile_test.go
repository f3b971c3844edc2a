package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

func TestAChangedSpecChangesTheChildrenInPlace(t *testing.T) {
	f := newFixture(t)
	f.complete()
	pods, service := f.pods(), f.service()
	f.update(func(s *cachev1alpha1.MemcachedSpec) { s.Size, s.ContainerPort, s.Image = 5, 80, "memcached:1.6.39" })
	if n := f.reconcile(); n != 3 {
		t.Errorf("%d writes, want 2 children and 1 status", n)
	}
	newPods, newService := f.pods(), f.service()
	if newPods.UID != pods.UID || newService.UID != service.UID || newService.Spec.ClusterIP != service.Spec.ClusterIP {
		t.Error("a child was made anew instead of changed")
	}
	c := f.container()
	if *newPods.Spec.Replicas != 5 || c.Image != "memcached:1.6.39" || c.Args[1] != "80" || len(c.Ports) != 1 ||
		c.Ports[0].ContainerPort != 80 {
		t.Errorf("the Deployment is %+v", newPods.Spec)
	}
	if ports := newService.Spec.Ports; len(ports) != 1 || ports[0].Port != 80 {
		t.Errorf("the ports of the Service are %+v", ports)
	}
	if len(newPods.Spec.Template.Spec.SecurityContext.Sysctls) != 1 {
		t.Error("a port below 1024 needs a sysctl, for memcached is not root")
	}
	f.update(func(s *cachev1alpha1.MemcachedSpec) { s.ContainerPort, s.Image = 11211, "" })
	f.reconcile()
	if c := f.container(); c.Image != defaultImage || len(c.Ports) != 1 ||
		len(f.pods().Spec.Template.Spec.SecurityContext.Sysctls) != 0 {
		t.Errorf("back again, the container is %+v", c)
	}
	if n := f.reconcile(); n != 0 {
		t.Errorf("in steady state %d writes were sent", n)
	}
}

func (f *fixture) configure(data map[string]string) {
	f.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.key.Namespace, Name: "config"}, Data: data}
	err := f.Create(f.t.Context(), config)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = f.Update(f.t.Context(), config)
	}
	f.must(err)
}

func named(m *cachev1alpha1.Memcached) {
	m.Spec.ConfigRef = &cachev1alpha1.ConfigReference{Name: "config"}
}

func TestAChangeOfTheConfigMapRollsThePodsThroughTheirFlags(t *testing.T) {
	f := newFixture(t, named)
	f.configure(map[string]string{KeyMemory: "128", KeyConnections: "2048", KeyVerbose: "2"})
	f.reconcile()
	if diff := cmp.Diff([]string{"-p", "11211", "-m", "128", "-c", "2048", "-vv"}, f.container().Args); diff != "" {
		t.Error(diff)
	}
	before := f.pods()
	f.configure(map[string]string{KeyMemory: "256"})
	if n := f.reconcile(); n != 1 {
		t.Errorf("%d writes, want the Deployment alone", n)
	}
	if after := f.pods(); after.UID != before.UID || after.Generation == before.Generation ||
		cmp.Equal(after.Spec.Template, before.Spec.Template) {
		t.Error("the pod template did not change, so no pod is replaced")
	}
	if diff := cmp.Diff([]string{"-p", "11211", "-m", "256", "-c", "1024"}, f.container().Args); diff != "" {
		t.Error(diff)
	}
	after := f.pods().Generation
	f.configure(map[string]string{KeyMemory: "256", "other": "key"})
	if n := f.reconcile(); n != 0 || f.pods().Generation != after {
		t.Errorf("a key that is not read changed, %d writes were sent", n)
	}
}

func TestWithoutItsConfigMapANewMemcachedWaitsAndARunningOneGoesOn(t *testing.T) {
	f := newFixture(t, named)
	if n := f.reconcile(); n != 1 {
		t.Errorf("%d writes, want the status alone", n)
	}
	f.is(owned.Degraded, "True ConfigNotFound")
	f.is(owned.Available, "False NoReadyPod")
	if result, err := f.reconcileLater(); err != nil || result != (ctrl.Result{}) {
		t.Errorf("a watch reports when it comes, Reconcile returned %+v, %v", result, err)
	}
	f.records("Warning ConfigNotFound")

	f.configure(map[string]string{})
	f.reconcile()
	f.deploy()
	f.reconcile()
	f.is(owned.Progressing, "False Complete")
	f.records("Normal Recovered", "Normal Complete")

	version := f.pods().ResourceVersion
	f.must(f.Delete(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.key.Namespace, Name: "config"}}))
	f.reconcile()
	f.is(owned.Degraded, "True ConfigNotFound")
	f.is(owned.Available, "True Serving")
	if f.pods().ResourceVersion != version {
		t.Error("the Deployment was changed")
	}
	f.deploy(2)
	f.reconcile()
	if n := f.memcached().Status.ReadyReplicas; n != 2 {
		t.Errorf("status reports %d ready pods, there are 2", n)
	}
}

func TestABadValueIsReportedWithItsKey(t *testing.T) {
	f := newFixture(t, named)
	f.configure(map[string]string{KeyMemory: "64"})
	f.complete()
	version := f.pods().ResourceVersion
	f.configure(map[string]string{KeyMemory: "much"})
	f.reconcile()
	f.is(owned.Degraded, "True InvalidConfig")
	if got, want := f.condition(owned.Degraded).Message,
		`ConfigMap config: memoryMB is "much": it must be an integer from 2 to 1048576`; got != want {
		t.Errorf("the message is %q", got)
	}
	if f.pods().ResourceVersion != version {
		t.Error("the Deployment was changed")
	}
	f.configure(map[string]string{KeyMemory: "65"})
	f.reconcile()
	f.is(owned.Degraded, "False AsExpected")
	f.records("Warning InvalidConfig", "Normal Recovered")
}

func TestAMemcachedThatIsGoneOrGoingIsLeftAlone(t *testing.T) {
	f := newFixture(t, func(m *cachev1alpha1.Memcached) { m.Finalizers = []string{"example.com/keep"} })
	f.must(f.Delete(t.Context(), f.memcached()))
	if n := f.reconcile(); n != 0 {
		t.Errorf("a Memcached is being deleted, %d writes were sent", n)
	}
	edit(f, &cachev1alpha1.Memcached{}, func(m *cachev1alpha1.Memcached) { m.Finalizers = nil })
	if n := f.reconcile(); n != 0 {
		t.Errorf("a Memcached is gone, %d writes were sent", n)
	}
}
