package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/example/nginx-operator/internal/admissiontest"
	"github.com/example/nginx-operator/internal/conditions"
)

// Experiments of what others do to an Nginx and its children. internal/owned has those that need no status.

// The type of a Service decides who reaches it: a policy that changes it is reported, and the pods are made.
func TestAMutatedServiceIsReportedAndNotSentAgain(t *testing.T) {
	b := newFixture(t)
	admissiontest.Mutate(t, b.cluster, b.namespace, "", "services", `Object{spec: Object.spec{type: "NodePort"}}`)
	for range 3 {
		b.reconcile()
	}
	b.pod(newPod(b.set(site), "site-1-a"), corev1.PodRunning)
	b.reconcile()
	nginx := b.nginx(site)
	c := meta.FindStatusCondition(nginx.Status.Conditions, conditions.Degraded)
	if c == nil || c.Reason != conditions.ReasonChildMutated || c.ObservedGeneration != nginx.Generation ||
		!strings.Contains(c.Message, "Service site: an admission policy or a webhook changes spec.type:") {
		t.Errorf("Degraded is %+v", c)
	}
	if diff := cmp.Diff([]string{"site-1-a"}, nginx.Status.Nodes); diff != "" {
		t.Error("the status is not kept current:", diff)
	}
	if n := b.writes("PATCH"); n != 2 {
		t.Errorf("%d writes of children, want 2", n)
	}
	if diff := cmp.Diff([]string{"Warning ChildMutated"}, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
}

func TestAFalsifiedStatusIsCorrectedAndBounded(t *testing.T) {
	b := newFixture(t)
	b.reconcile()
	b.pod(newPod(b.set(site), "site-1-a"), corev1.PodRunning)
	b.reconcile()
	b.recorded()
	corrections := 0
	for range 10 {
		nginx := b.nginx(site)
		nginx.Status.Nodes, nginx.Status.Conditions[0].Reason = []string{"somebody-else"}, "Falsified"
		b.must(b.cluster.Status().Update(t.Context(), nginx))
		before := b.writes()
		result, err := b.reconcileNow()
		b.must(err)
		if corrections += b.writes() - before; b.writes() == before && result.RequeueAfter == 0 {
			t.Error("it is neither corrected nor tried again")
		}
		b.clock.SetTime(b.clock.Now().Add(500 * time.Millisecond))
	}
	if corrections < 1 || corrections > 5 { // 5 at once; in 5 s there is no sixth
		t.Errorf("%d corrections, want at most 5", corrections)
	}
	b.reconcile()
	if diff := cmp.Diff([]string{"site-1-a"}, b.nginx(site).Status.Nodes); diff != "" {
		t.Error(diff)
	}
	if got := b.recorded(); len(got) != 0 {
		t.Errorf("events: %v", got)
	}
}

func TestAFalsifiedStatusIsNoticedByAWatch(t *testing.T) {
	t.Parallel()
	l := newLoop(t).start()
	l.ask(site)
	l.deployed(site)
	l.Eventually(l.condition(site, conditions.Progressing)).Should(gomega.Equal(complete))
	l.quiet()
	l.Eventually(func() error {
		nginx := l.nginx(site)
		nginx.Status.Nodes = []string{"somebody-else"}
		return l.Status().Update(t.Context(), nginx)
	}).Should(gomega.Succeed())
	l.Eventually(l.listed(site)).Should(gomega.BeEmpty())
}

// Both objects that have the name of a child are named at once.
func TestAllConflictsAreInOneMessage(t *testing.T) {
	b := newFixture(t)
	for _, kind := range []string{"Deployment", "Service"} {
		b.must(b.cluster.Create(t.Context(), unmanagedObject(kind, b.namespace)))
	}
	b.reconcile()
	message := meta.FindStatusCondition(b.nginx(site).Status.Conditions, conditions.Degraded).Message
	if !strings.Contains(message, "Deployment site exists") || !strings.Contains(message, "Service site exists") {
		t.Errorf("the message is %q", message)
	}
	b.must(b.cluster.Delete(t.Context(), get(b.cluster, site, &appsv1.Deployment{})))
	b.must(b.cluster.Delete(t.Context(), get(b.cluster, site, &corev1.Service{})))
	b.reconcile()
	if got := b.condition(site, conditions.Degraded)(); got != well {
		t.Errorf("Degraded is %s", got)
	}
}
