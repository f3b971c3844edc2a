package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/conditions"
	"github.com/example/memcached-operator/internal/testenv"
)

func TestFromNothingToCompleteTakesFourWrites(t *testing.T) {
	f := newFixture(t)
	first := f.reconcile()
	if first != 3 {
		t.Errorf("the first reconcile sent %d writes, want 2 children and 1 status", first)
	}
	f.is(conditions.Available, "False NoReadyPod")
	f.is(conditions.Progressing, "True RollingOut")
	if n := f.reconcile(); n != 0 {
		t.Errorf("nothing changed, %d writes were sent", n)
	}
	f.deploy()
	last := f.reconcile()
	if last != 1 {
		t.Errorf("the pods are ready, %d writes were sent, want 1", last)
	}
	f.is(conditions.Available, "True PodsReady")
	f.is(conditions.Progressing, "False Complete")
	f.is(conditions.Degraded, "False AsExpected")
	m := f.memcached()
	if s := m.Status; s.ReadyReplicas != 3 || s.ObservedGeneration != m.Generation ||
		s.Selector != "app.kubernetes.io/instance=memcached-sample,app.kubernetes.io/name=memcached" {
		t.Errorf("status is %+v", s)
	}
	if n := f.reconcile(); n != 0 {
		t.Errorf("in steady state %d writes were sent", n)
	}
	f.records("Normal Complete")
	f.restart(f.operator)
	if n := f.reconcile(); n != 0 {
		t.Errorf("the operator restarted in the desired state, and sent %d writes", n)
	}
	t.Logf("from creation to complete: %d writes; in steady state 0; after a restart 0", first+last)
	f.records()
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		if !metav1.IsControlledBy(get(f, obj), m) {
			t.Errorf("%T is not controlled by the Memcached", obj)
		}
	}
}

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
		t.Errorf("a key that nobody reads changed, %d writes were sent", n)
	}
}

func TestWithoutItsConfigMapANewMemcachedWaitsAndARunningOneGoesOn(t *testing.T) {
	f := newFixture(t, named)
	if n := f.reconcile(); n != 1 {
		t.Errorf("%d writes, want the status alone", n)
	}
	f.is(conditions.Degraded, "True ConfigNotFound")
	f.is(conditions.Available, "False NoReadyPod")
	if result, err := f.reconcileLater(); err != nil || result != (ctrl.Result{}) {
		t.Errorf("a watch reports when it comes, Reconcile returned %+v, %v", result, err)
	}
	f.records("Warning ConfigNotFound")

	f.configure(map[string]string{})
	f.reconcile()
	f.deploy()
	f.reconcile()
	f.is(conditions.Progressing, "False Complete")
	f.records("Normal Recovered", "Normal Complete")

	version := f.pods().ResourceVersion
	f.must(f.Delete(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.key.Namespace, Name: "config"}}))
	f.reconcile()
	f.is(conditions.Degraded, "True ConfigNotFound")
	f.is(conditions.Available, "True PodsReady")
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
	f.is(conditions.Degraded, "True InvalidConfig")
	if got, want := f.condition(conditions.Degraded).Message,
		`ConfigMap config: memoryMB is "much": it must be an integer from 2 to 1048576`; got != want {
		t.Errorf("the message is %q", got)
	}
	if f.pods().ResourceVersion != version {
		t.Error("the Deployment was changed")
	}
	f.configure(map[string]string{KeyMemory: "65"})
	f.reconcile()
	f.is(conditions.Degraded, "False AsExpected")
	f.records("Warning InvalidConfig", "Normal Recovered")
}

func TestADeletedChildComesBackOnce(t *testing.T) {
	f := newFixture(t)
	f.complete()
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		f.must(f.Delete(t.Context(), get(f, obj)))
		f.reconcile()
		get(f, obj)
		if n := f.reconcile(); n > 1 { // the status, when the pods are gone
			t.Errorf("%T is back, %d writes more", obj, n)
		}
		if n := f.reconcile(); n != 0 {
			t.Errorf("%T is back, and all is reported: %d writes more", obj, n)
		}
	}
	f.is(conditions.Available, "False NoReadyPod")
}

func TestARolloutThatMovesIsNotReportedPodByPod(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	for ready := range int32(4) {
		f.deploy(ready)
		d := f.pods()
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: f.clock.Now()}}}
		f.must(f.Status().Update(t.Context(), d))
		result, err := f.reconcileNow()
		f.must(err)
		if asks := result.RequeueAfter > 0; asks != (ready == 1 || ready == 2) {
			t.Errorf("%d of 3 pods are ready: %+v", ready, result)
		}
	}
	if n := f.writes("PUT memcacheds/status"); n != 2 {
		t.Errorf("from creation to complete %d status writes, want 2", n)
	}
	if n := f.memcached().Status.ReadyReplicas; n != 3 {
		t.Errorf("status reports %d ready pods", n)
	}
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

func TestTwoMemcachedsNeverShareAPod(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	one := f.pods().Spec.Selector.MatchLabels
	other := sample(t)
	other.Namespace, other.Name = f.key.Namespace, "other"
	f.must(f.Create(t.Context(), other))
	f.key.Name = "other"
	f.reconcile()
	if two := f.pods(); cmp.Equal(one, two.Spec.Selector.MatchLabels) ||
		!cmp.Equal(f.service().Spec.Selector, two.Spec.Selector.MatchLabels) {
		t.Errorf("the selectors are %v and %v, the Service's %v", one, two.Spec.Selector.MatchLabels,
			f.service().Spec.Selector)
	}
}

func TestAnOperatorThatDiedAfterAnyWriteIsReplacedByTheNext(t *testing.T) {
	for n := 1; n <= 4; n++ { // two children, the first status, the last status
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			f := newFixture(t)
			f.between(testenv.DieAfter(n))
			_, err := f.reconcileLater()
			if n < 4 { // it died in its first reconcile
				if err == nil {
					t.Error("the process lives")
				}
				f.between(nil)
				f.restart(f.operator)
				f.reconcile()
			}
			f.deploy()
			if _, err := f.reconcileLater(); (err != nil) != (n == 4) {
				t.Errorf("the pods are ready, the reconcile ended with %v", err)
			}
			f.between(nil)
			f.restart(f.operator)
			f.reconcile()
			f.is(conditions.Progressing, "False Complete")
			if patches := f.writes("PATCH"); patches != 2 {
				t.Errorf("%d child writes, want 2", patches)
			}
			if n := f.reconcile(); n != 0 {
				t.Errorf("in steady state %d writes were sent", n)
			}
		})
	}
}

func TestAFailureOfTheAPIServerIsNeverShown(t *testing.T) {
	f := newFixture(t)
	f.complete()
	before := f.memcached().Status
	f.must(f.Delete(t.Context(), f.service()))
	for _, code := range []int{409, 429, 500, 503} {
		f.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasPrefix(what, "PATCH") {
				return answer(code)
			}
			return pass()
		})
		result, err := f.reconcileLater()
		if (err == nil) != (code == 409) || (result.RequeueAfter > 0) != (code == 409) {
			t.Errorf("%d: Reconcile returned %+v, %v; want a try later", code, result, err)
		}
		if diff := cmp.Diff(before, f.memcached().Status); diff != "" {
			t.Errorf("%d shows in status:\n%s", code, diff)
		}
	}
	f.between(nil)
	f.reconcile()
	get(f, &corev1.Service{})
	f.records()
}

func TestAConflictIsReportedAndNothingIsOverwritten(t *testing.T) {
	for _, obj := range []client.Object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "other"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}},
		&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		t.Run(fmt.Sprintf("%T", obj), func(t *testing.T) {
			f := newFixture(t)
			obj.SetNamespace(f.key.Namespace)
			obj.SetName(f.key.Name)
			f.must(f.Create(t.Context(), obj))
			version := obj.GetResourceVersion()
			for range 3 {
				f.reconcile()
			}
			f.is(conditions.Degraded, "True ResourceConflict")
			f.records("Warning ResourceConflict")
			if get(f, obj); obj.GetResourceVersion() != version {
				t.Error("the unmanaged object was changed")
			}
			f.must(f.Delete(t.Context(), obj))
			f.reconcile()
			f.is(conditions.Degraded, "False AsExpected")
		})
	}
}
