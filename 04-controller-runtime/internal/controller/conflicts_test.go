package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// asking makes a test's MyWeb ask for a port that no other test uses.
func asking(port int32) func(*webv1.MyWeb) {
	return func(w *webv1.MyWeb) { w.Spec.NodePortNumber = &port }
}

// takePort makes an unmanaged Service that holds a node port.
func (b *fixture) takePort(port int32) *corev1.Service {
	b.t.Helper()
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "other"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
	b.must(b.Create(b.t.Context(), other))
	return other
}

func TestADeletedServiceAsksForItsOldPortOnlyWhenThatIsFree(t *testing.T) {
	b := newFixture(t)
	b.reconciled()
	old := get(b, &corev1.Service{}).Spec.Ports[0].NodePort
	b.must(b.Delete(t.Context(), get(b, &corev1.Service{})))
	b.takePort(old)
	b.reconciled() // reports that the port is gone
	b.reconciled()
	if c := b.condition(owned.Degraded); c.Status != metav1.ConditionFalse {
		t.Errorf("any port would do, Degraded is %+v", c)
	}
	if now := get(b, &webv1.MyWeb{}).Status.NodePort; now == old || now == 0 {
		t.Errorf("the port is %d, before it was %d", now, old)
	}
}

// refusedPort returns the API server's answer to a Service on a node port that is not free.
func refusedPort() (*http.Response, error) {
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = answer.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,` +
		`"message":"taken","details":{"causes":[` +
		`{"reason":"FieldValueInvalid","field":"spec.ports[0].nodePort","message":"provided port is already allocated"}]}}`)
	return answer.Result(), nil
}

func TestADeletedServiceWaitsUntilItsOwnPortIsFree(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*webv1.MyWeb)
		busy     int // tries until the port is free
		same     bool
		recorded []string
	}{
		"a port of the cluster's choice": {func(*webv1.MyWeb) {}, 3, true, nil},
		"a port of the user's choice":    {asking(freePort()), 3, true, nil},
		"the cluster's, never free": {
			func(*webv1.MyWeb) {}, 1000, false, []string{"Warning NodePortUnavailable", "Normal Recovered"}},
		"the user's, free much later": {
			asking(freePort()), 20, true, []string{"Warning NodePortUnavailable", "Normal Recovered"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, test.change)
			b.reconciled()
			old := get(b, &corev1.Service{}).Spec.Ports[0].NodePort
			b.must(b.Delete(t.Context(), get(b, &corev1.Service{})))
			busy := test.busy
			b.intercept(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
				opts ...client.ApplyOption) error {
				service, ok := obj.(*corev1ac.ServiceApplyConfiguration)
				if busy--; ok && service.Spec.Ports[0].NodePort != nil && busy > 0 {
					b.between(func(string, func() (*http.Response, error)) (*http.Response, error) { return refusedPort() })
					defer b.between(nil)
				}
				return c.Apply(ctx, obj, opts...)
			}})
			var result ctrl.Result
			for tries := 0; tries == 0 || result.RequeueAfter > 0; tries++ {
				var err error
				if result, err = b.reconcileLater(); err != nil || tries > 40 {
					t.Fatalf("try %d: %+v, %v", tries, result, err)
				}
			}
			if now := get(b, &corev1.Service{}).Spec.Ports[0].NodePort; (now == old) != test.same {
				t.Errorf("the port was %d and is %d", old, now)
			}
			if diff := cmp.Diff(test.recorded, b.recorded()); diff != "" {
				t.Error("events:", diff)
			}
		})
	}
}

func TestAQuotaIsReportedOnceAndHeals(t *testing.T) {
	b := newFixture(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}}}
	b.must(b.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	b.must(b.WithWatch.Status().Update(t.Context(), quota)) // as the quota controller would
	// The quota admission has its own cache.
	b.eventually(func() bool {
		err := b.Create(t.Context(), mywebtest.Unmanaged("Deployment", b.key.Namespace, "probe"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "exceeded quota")
	})
	for range 3 {
		if result, err := b.reconcileLater(); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("no watch reports its end, Reconcile returned %+v, %v", result, err)
		}
	}
	if c := b.condition(owned.Degraded); c.Reason != owned.ReasonChildRejected ||
		!strings.Contains(c.Message, "quota") {
		t.Errorf("Degraded is %+v", c)
	}
	b.must(b.Delete(t.Context(), quota))
	b.eventually(func() bool {
		_, _ = b.reconcileLater()
		return b.condition(owned.Degraded).Status == metav1.ConditionFalse
	})
	if diff := cmp.Diff([]string{"Warning ChildRejected", "Normal Recovered"}, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
}

func TestDriftCorrectionIsBounded(t *testing.T) {
	b := newFixture(t)
	b.reconciled()
	for i := range 5 + 3 {
		edit(b, &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["index.html"] = fmt.Sprint(i) })
		before := b.writes("PATCH")
		result, err := b.reconcileNow()
		b.must(err)
		wait, want := time.Duration(0), int64(1)
		if i >= 5 {
			wait, want = 15*time.Second, 0
		}
		if n := b.writes("PATCH") - before; n != want || result.RequeueAfter != wait {
			t.Errorf("correction number %d: %d writes, then %+v; want %d, %s", i+1, n, result, want, wait)
		}
	}
	edit(b, &webv1.MyWeb{}, func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new("new") })
	_, err := b.reconcileNow()
	b.must(err)
	if got := get(b, &corev1.ConfigMap{}).Data["index.html"]; got != "new" {
		t.Errorf("the user's own change has to wait: the page is %q", got)
	}
}

func TestAnAutoscalerOfTheDeploymentIsReportedUntilItStops(t *testing.T) {
	b := newFixture(t)
	b.reconciled()
	b.roll(1)
	b.reconciled()
	scale := func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
		b.must(b.WithWatch.SubResource("scale").Patch(t.Context(), get(b, &appsv1.Deployment{}), patch,
			client.FieldOwner("autoscaler"), client.WithSubResourceBody(&autoscalingv1.Scale{})))
	}
	for range 5 {
		scale()
		b.reconciledNow()
	}
	if c := b.condition(owned.Degraded); c.Status != metav1.ConditionFalse {
		t.Errorf("before a correction has to wait: %+v", c)
	}
	scale()
	b.reconciledNow()
	c := b.condition(owned.Degraded)
	want := "Deployment myweb: autoscaler (by the subresource scale) sets spec.replicas again and again, and so does this " +
		"MyWeb: an autoscaler belongs on the scale of the MyWeb: its scaleTargetRef must name MyWeb myweb"
	if c.Status != metav1.ConditionTrue || c.Reason != hardening.ReasonFieldConflict || c.Message != want {
		t.Errorf("a correction has to wait: %+v", c)
	}
	before := b.writes()
	b.reconciledNow()
	b.clock.SetTime(b.clock.Now().Add(15 * time.Second))
	if n := b.writes() - before; n != 0 {
		t.Errorf("%d writes while the correction has to wait", n)
	}
	result, err := b.reconcileNow() // corrected
	b.must(err)
	if n := *get(b, &appsv1.Deployment{}).Spec.Replicas; n != 1 || result.RequeueAfter != 30*time.Second {
		t.Errorf("after the backoff: %d replicas, %+v", n, result)
	}
	b.roll(1)
	b.reconciledNow()
	if c := b.condition(owned.Degraded); c.Reason != hardening.ReasonFieldConflict {
		t.Errorf("just after a correction: %+v", c)
	}
	b.reconciled() // a minute later
	if c := b.condition(owned.Degraded); c.Status != metav1.ConditionFalse {
		t.Errorf("when the autoscaler has stopped: %+v", c)
	}
}

func TestAChildThatIsDeletedAgainAndAgainIsReported(t *testing.T) {
	b := newFixture(t)
	b.reconciled()
	for range 5 {
		b.must(b.Delete(t.Context(), get(b, &corev1.ConfigMap{})))
		b.reconciledNow()
	}
	b.must(b.Delete(t.Context(), get(b, &corev1.ConfigMap{})))
	result, err := b.reconcileNow()
	b.must(err)
	c := b.condition(owned.Degraded)
	want := "ConfigMap myweb: another client deletes it again and again, and this MyWeb creates it again: stop that client"
	if c.Reason != hardening.ReasonFieldConflict || c.Message != want || result.RequeueAfter != 15*time.Second {
		t.Errorf("another creation has to wait: %+v, %+v", result, c)
	}
	b.reconciled() // a minute later
	if got := get(b, &corev1.ConfigMap{}).Data["index.html"]; got == "" {
		t.Error("after the backoff there is no page")
	}
}

// Hardening knows no kind of child: the drift of a StatefulSet is corrected and limited like that of a Deployment.
func TestAStatefulSetIsHardened(t *testing.T) {
	b := newFixture(t)
	h, web := operator.NewHardening(b.client, b.WithWatch), get(b, &webv1.MyWeb{})
	applier := h.Applier(owned.ServerSideApply{Client: b.client, FieldOwner: h.FieldOwner})
	labels := map[string]string{"app": "web"}
	apply := func() error {
		desired := appsv1ac.StatefulSet(web.Name, web.Namespace).WithSpec(appsv1ac.StatefulSetSpec().WithReplicas(1).
			WithServiceName("web").WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().
				WithContainers(corev1ac.Container().WithName("nginx").WithImage("nginx")))))
		child := &owned.Child{Kind: "StatefulSet", Desired: desired, Meta: desired.ObjectMetaApplyConfiguration,
			Live: &appsv1.StatefulSet{}}
		h.Kind.Own(web, child)
		b.must(h.Kind.Observe(t.Context(), b.client, web, child))
		return h.Kind.Apply(t.Context(), applier, child)
	}
	b.must(apply())
	for range 5 {
		edit(b, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) })
		b.must(apply())
		if n := *get(b, &appsv1.StatefulSet{}).Spec.Replicas; n != 1 {
			t.Fatalf("a user set the replicas, and they stay %d", n)
		}
	}
	edit(b, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) })
	before := b.writes()
	if problem := owned.AsCondition(apply()); problem == nil || problem.Reason != hardening.ReasonFieldConflict ||
		problem.RetryAfter == 0 || b.writes() != before {
		t.Errorf("another correction: %+v, %d writes", problem, b.writes()-before)
	}
}

// roll plays the Deployment controller at the moment when this number of the desired pods is ready.
func (b *fixture) roll(ready int32) {
	b.t.Helper()
	d := get(b, &appsv1.Deployment{})
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas,
		UpdatedReplicas: *d.Spec.Replicas,
		ReadyReplicas:   ready, AvailableReplicas: ready,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing,
			Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
			LastUpdateTime: metav1.Time{Time: b.clock.Now().Add(time.Minute)}}}}
	b.must(b.WithWatch.Status().Update(b.t.Context(), d))
}

func TestARolloutThatStandsStillIsReported(t *testing.T) {
	b := newFixture(t, func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(3)) })
	b.reconciled()
	b.roll(1)
	b.reconciled()
	b.reconciled() // a minute later
	if s := get(b, &webv1.MyWeb{}).Status; s.Completed || s.ReadyReplicas != 1 {
		t.Errorf("status is %+v", s)
	}
}

func TestANamespaceThatIsGoingIsLeftAlone(t *testing.T) {
	b := newFixture(t)
	b.must(b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.key.Namespace}}))
	if result, err := b.reconcileLater(); err != nil || result != (ctrl.Result{}) {
		t.Errorf("Reconcile returned %+v, %v", result, err)
	}
	if n := b.writes("PUT"); n != 0 {
		t.Errorf("%d status writes", n)
	}
}
