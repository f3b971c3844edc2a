package controller

import (
	"errors"
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
	"github.com/example/memcached-operator/internal/owned"
)

func TestFromNothingToCompleteTakesFourWrites(t *testing.T) {
	b := newBench(t)
	first := b.reconcile()
	if first != 3 {
		t.Errorf("the first reconcile sent %d writes, want 2 children and 1 status", first)
	}
	b.is(owned.ConditionAvailable, "False NoReadyPod")
	b.is(owned.ConditionProgressing, "True RollingOut")
	if n := b.reconcile(); n != 0 {
		t.Errorf("nothing changed, %d writes were sent", n)
	}
	b.deploy()
	last := b.reconcile()
	if last != 1 {
		t.Errorf("the pods are ready, %d writes were sent, want 1", last)
	}
	b.is(owned.ConditionAvailable, "True PodsReady")
	b.is(owned.ConditionProgressing, "False Complete")
	b.is(owned.ConditionDegraded, "False AsExpected")
	m := b.memcached()
	if s := m.Status; s.ReadyReplicas != 3 || s.ObservedGeneration != m.Generation ||
		s.Selector != "app.kubernetes.io/instance=memcached-sample,app.kubernetes.io/name=memcached" {
		t.Errorf("status is %+v", s)
	}
	if n := b.reconcile(); n != 0 {
		t.Errorf("at rest %d writes were sent", n)
	}
	b.tells("Normal Complete")
	b.restart(b.Reconciler.Client)
	if n := b.reconcile(); n != 0 {
		t.Errorf("the operator started again over what is as it shall be, and sent %d writes", n)
	}
	t.Logf("from creation to complete: %d writes; at rest 0; after a restart 0", first+last)
	b.tells()
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		if !metav1.IsControlledBy(get(b, obj), m) {
			t.Errorf("%T is not controlled by the Memcached", obj)
		}
	}
}

func TestAChangedSpecChangesTheChildrenInPlace(t *testing.T) {
	b := newBench(t)
	b.complete()
	pods, service := b.pods(), b.service()
	b.ask(func(s *cachev1alpha1.MemcachedSpec) { s.Size, s.ContainerPort, s.Image = 5, 80, "memcached:1.6.39" })
	if n := b.reconcile(); n != 3 {
		t.Errorf("%d writes, want 2 children and 1 status", n)
	}
	newPods, newService := b.pods(), b.service()
	if newPods.UID != pods.UID || newService.UID != service.UID || newService.Spec.ClusterIP != service.Spec.ClusterIP {
		t.Error("a child was made anew instead of changed")
	}
	c := b.container()
	if *newPods.Spec.Replicas != 5 || c.Image != "memcached:1.6.39" || c.Args[1] != "80" || len(c.Ports) != 1 || c.Ports[0].ContainerPort != 80 {
		t.Errorf("the Deployment is %+v", newPods.Spec)
	}
	if ports := newService.Spec.Ports; len(ports) != 1 || ports[0].Port != 80 {
		t.Errorf("the ports of the Service are %+v", ports)
	}
	if len(newPods.Spec.Template.Spec.SecurityContext.Sysctls) != 1 {
		t.Error("a port below 1024 needs a sysctl, for memcached is not root")
	}
	b.ask(func(s *cachev1alpha1.MemcachedSpec) { s.ContainerPort, s.Image = 11211, "" })
	b.reconcile()
	if c := b.container(); c.Image != defaultImage || len(c.Ports) != 1 || len(b.pods().Spec.Template.Spec.SecurityContext.Sysctls) != 0 {
		t.Errorf("back again, the container is %+v", c)
	}
	if n := b.reconcile(); n != 0 {
		t.Errorf("at rest %d writes were sent", n)
	}
}

func (b *bench) configure(data map[string]string) {
	b.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "config"}, Data: data}
	err := b.Create(b.t.Context(), config)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = b.Update(b.t.Context(), config)
	}
	b.must(err)
}

func named(m *cachev1alpha1.Memcached) {
	m.Spec.ConfigRef = &cachev1alpha1.ConfigReference{Name: "config"}
}

func TestAChangeOfTheConfigMapRollsThePodsThroughTheirFlags(t *testing.T) {
	b := newBench(t, named)
	b.configure(map[string]string{KeyMemory: "128", KeyConnections: "2048", KeyVerbose: "2"})
	b.reconcile()
	if diff := cmp.Diff([]string{"-p", "11211", "-m", "128", "-c", "2048", "-vv"}, b.container().Args); diff != "" {
		t.Error(diff)
	}
	before := b.pods()
	b.configure(map[string]string{KeyMemory: "256"})
	if n := b.reconcile(); n != 1 {
		t.Errorf("%d writes, want the Deployment alone", n)
	}
	if after := b.pods(); after.UID != before.UID || after.Generation == before.Generation ||
		cmp.Equal(after.Spec.Template, before.Spec.Template) {
		t.Error("the pod template did not change, so no pod is replaced")
	}
	if diff := cmp.Diff([]string{"-p", "11211", "-m", "256", "-c", "1024"}, b.container().Args); diff != "" {
		t.Error(diff)
	}
	after := b.pods().Generation
	b.configure(map[string]string{KeyMemory: "256", "other": "key"})
	if n := b.reconcile(); n != 0 || b.pods().Generation != after {
		t.Errorf("a key that nobody reads changed, %d writes were sent", n)
	}
}

func TestWithoutItsConfigMapANewMemcachedWaitsAndARunningOneGoesOn(t *testing.T) {
	b := newBench(t, named)
	if n := b.reconcile(); n != 1 {
		t.Errorf("%d writes, want the status alone", n)
	}
	b.is(owned.ConditionDegraded, "True ConfigNotFound")
	b.is(owned.ConditionAvailable, "False NoReadyPod")
	if result, err := b.look(); err != nil || result != (ctrl.Result{}) {
		t.Errorf("a watch tells when it comes, Reconcile returned %+v, %v", result, err)
	}
	b.tells("Warning ConfigNotFound")

	b.configure(map[string]string{})
	b.reconcile()
	b.deploy()
	b.reconcile()
	b.is(owned.ConditionProgressing, "False Complete")
	b.tells("Normal Recovered", "Normal Complete")

	version := b.pods().ResourceVersion
	b.must(b.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "config"}}))
	b.reconcile()
	b.is(owned.ConditionDegraded, "True ConfigNotFound")
	b.is(owned.ConditionAvailable, "True PodsReady")
	if b.pods().ResourceVersion != version {
		t.Error("the Deployment was changed")
	}
	b.deploy(2)
	b.reconcile()
	if n := b.memcached().Status.ReadyReplicas; n != 2 {
		t.Errorf("status tells of %d ready pods, there are 2", n)
	}
}

func TestABadValueIsToldByKeyAndValue(t *testing.T) {
	b := newBench(t, named)
	b.configure(map[string]string{KeyMemory: "64"})
	b.complete()
	version := b.pods().ResourceVersion
	b.configure(map[string]string{KeyMemory: "much"})
	b.reconcile()
	b.is(owned.ConditionDegraded, "True InvalidConfig")
	if got, want := b.condition(owned.ConditionDegraded).Message,
		`ConfigMap config: memoryMB is "much": it must be an integer from 2 to 1048576`; got != want {
		t.Errorf("the message is %q", got)
	}
	if b.pods().ResourceVersion != version {
		t.Error("the Deployment was changed")
	}
	b.configure(map[string]string{KeyMemory: "65"})
	b.reconcile()
	b.is(owned.ConditionDegraded, "False AsExpected")
	b.tells("Warning InvalidConfig", "Normal Recovered")
}

func TestADeletedChildComesBackOnce(t *testing.T) {
	b := newBench(t)
	b.complete()
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		b.must(b.Delete(t.Context(), get(b, obj)))
		b.reconcile()
		get(b, obj)
		if n := b.reconcile(); n > 1 { // the status, when the pods are gone
			t.Errorf("%T is back, %d writes more", obj, n)
		}
		if n := b.reconcile(); n != 0 {
			t.Errorf("%T is back, and all is told: %d writes more", obj, n)
		}
	}
	b.is(owned.ConditionAvailable, "False NoReadyPod")
}

func TestARolloutThatMovesIsNotToldPodByPod(t *testing.T) {
	b := newBench(t)
	b.reconcile()
	for ready := range int32(4) {
		b.deploy(ready)
		d := b.pods()
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: b.clock.Now()}}}
		b.must(b.Status().Update(t.Context(), d))
		result, err := b.lookAtOnce()
		b.must(err)
		if asks := result.RequeueAfter > 0; asks != (ready == 1 || ready == 2) {
			t.Errorf("%d of 3 pods are ready: %+v", ready, result)
		}
	}
	if n := b.writes("PUT memcacheds/status"); n != 2 {
		t.Errorf("from creation to complete %d status writes, want 2", n)
	}
	if n := b.memcached().Status.ReadyReplicas; n != 3 {
		t.Errorf("status tells of %d ready pods", n)
	}
}

func TestAMemcachedThatIsGoneOrGoingIsLeftAlone(t *testing.T) {
	b := newBench(t, func(m *cachev1alpha1.Memcached) { m.Finalizers = []string{"example.com/keep"} })
	b.must(b.Delete(t.Context(), b.memcached()))
	if n := b.reconcile(); n != 0 {
		t.Errorf("a Memcached is being deleted, %d writes were sent", n)
	}
	edit(b, &cachev1alpha1.Memcached{}, func(m *cachev1alpha1.Memcached) { m.Finalizers = nil })
	if n := b.reconcile(); n != 0 {
		t.Errorf("a Memcached is gone, %d writes were sent", n)
	}
}

func TestTwoMemcachedsNeverShareAPod(t *testing.T) {
	b := newBench(t)
	b.reconcile()
	one := b.pods().Spec.Selector.MatchLabels
	other := sample(t)
	other.Namespace, other.Name = b.key.Namespace, "other"
	b.must(b.Create(t.Context(), other))
	b.key.Name = "other"
	b.reconcile()
	if two := b.pods(); cmp.Equal(one, two.Spec.Selector.MatchLabels) || !cmp.Equal(b.service().Spec.Selector, two.Spec.Selector.MatchLabels) {
		t.Errorf("the selectors are %v and %v, the Service's %v", one, two.Spec.Selector.MatchLabels, b.service().Spec.Selector)
	}
}

// dieAfter lets so many writes reach the API server. The answer to the last one does not come back, and
// nothing is sent any more: the process is dead.
func (b *bench) dieAfter(writes int) {
	b.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
		read := strings.HasPrefix(what, http.MethodGet) || strings.HasPrefix(what, "LIST")
		if writes > 0 && !read {
			if writes--; writes == 0 {
				if response, err := pass(); err == nil {
					response.Body.Close()
				}
			}
		}
		if writes == 0 {
			return nil, errors.New("the process is dead")
		}
		return pass()
	})
}

func TestAnOperatorThatDiedAfterAnyWriteIsTakenUpByTheNext(t *testing.T) {
	for n := 1; n <= 4; n++ { // two children, the first status, the last status
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			b := newBench(t)
			b.dieAfter(n)
			_, err := b.look()
			if n < 4 { // it died in its first look
				if err == nil {
					t.Error("the process lives")
				}
				b.between(nil)
				b.restart(b.Reconciler.Client)
				b.reconcile()
			}
			b.deploy()
			if _, err := b.look(); (err != nil) != (n == 4) {
				t.Errorf("the pods are ready, the look ended with %v", err)
			}
			b.between(nil)
			b.restart(b.Reconciler.Client)
			b.reconcile()
			b.is(owned.ConditionProgressing, "False Complete")
			if patches := b.writes("PATCH"); patches != 2 {
				t.Errorf("%d child writes, want 2", patches)
			}
			if n := b.reconcile(); n != 0 {
				t.Errorf("at rest %d writes were sent", n)
			}
		})
	}
}

func TestAFailureOfTheAPIServerIsNeverShown(t *testing.T) {
	b := newBench(t)
	b.complete()
	before := b.memcached().Status
	b.must(b.Delete(t.Context(), b.service()))
	for reason, code := range map[string]int{"Conflict": 409, "TooManyRequests": 429, "InternalError": 500, "ServiceUnavailable": 503} {
		b.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasPrefix(what, "PATCH") {
				return answer(code, reason)
			}
			return pass()
		})
		result, err := b.look()
		if (err == nil) != (code == 409) || (result.RequeueAfter > 0) != (code == 409) {
			t.Errorf("%d: Reconcile returned %+v, %v; want a try later", code, result, err)
		}
		if diff := cmp.Diff(before, b.memcached().Status); diff != "" {
			t.Errorf("%d shows in status:\n%s", code, diff)
		}
	}
	b.between(nil)
	b.reconcile()
	get(b, &corev1.Service{})
	b.tells()
}

func TestAConflictIsToldAndNothingIsOverwritten(t *testing.T) {
	for _, obj := range []client.Object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "other"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}},
		&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		t.Run(fmt.Sprintf("%T", obj), func(t *testing.T) {
			b := newBench(t)
			obj.SetNamespace(b.key.Namespace)
			obj.SetName(b.key.Name)
			b.must(b.Create(t.Context(), obj))
			version := obj.GetResourceVersion()
			for range 3 {
				b.reconcile()
			}
			b.is(owned.ConditionDegraded, "True ResourceConflict")
			b.tells("Warning ResourceConflict")
			if get(b, obj); obj.GetResourceVersion() != version {
				t.Error("the foreign object was changed")
			}
			b.must(b.Delete(t.Context(), obj))
			b.reconcile()
			b.is(owned.ConditionDegraded, "False AsExpected")
		})
	}
}
