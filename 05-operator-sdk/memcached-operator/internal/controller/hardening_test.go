package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/admissiontest"
	"github.com/example/memcached-operator/internal/conditions"
)

// Experiments of what others do to a Memcached and its children, from admission policies to a falsified status.
// internal/owned has those that need no status.

const mutateImage = `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
	containers: [Object.spec.template.spec.containers{name: "memcached", image: "mirror.example.com/memcached"}]}}}}`

func TestAMutatedChildIsReportedAndNotSentAgain(t *testing.T) {
	f := newFixture(t)
	admissiontest.Mutate(t, f, f.key.Namespace, "apps", "deployments", mutateImage)
	for range 3 {
		f.reconcile()
	}
	f.service()
	f.is(conditions.Degraded, "True ChildMutated")
	f.is(conditions.Progressing, "False ChildMutated")
	if c := f.condition(conditions.Degraded); c.ObservedGeneration != f.memcached().Generation ||
		!strings.Contains(c.Message, "a webhook changes spec.template.spec.containers[memcached].image:") {
		t.Errorf("the condition is %+v", c)
	}
	if n := f.writes("PATCH"); n != 2 {
		t.Errorf("%d writes of children, want 2", n)
	}
	f.deploy()
	f.reconcile()
	f.is(conditions.Available, "True PodsReady")
	f.is(conditions.Degraded, "True ChildMutated")
	f.update(func(s *cachev1alpha1.MemcachedSpec) { s.Size = 2 })
	f.reconcile()
	f.reconcile()
	if n := f.writes("PATCH deployments"); n != 2 || *f.pods().Spec.Replicas != 2 {
		t.Errorf("the desired state changed: %d writes of the Deployment, which has %d replicas", n, *f.pods().Spec.Replicas)
	}
	f.records("Warning ChildMutated")
}

// falsify writes a status as somebody with the right to do so might.
func falsify(m *cachev1alpha1.Memcached) {
	m.Status.ReadyReplicas = 99
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].Status, m.Status.Conditions[i].Reason = metav1.ConditionUnknown, "Falsified"
	}
}

func TestAFalsifiedStatusIsCorrectedAndBounded(t *testing.T) {
	f := newFixture(t)
	f.complete()
	f.reconcile()
	before := f.memcached().Status
	for i := range 8 {
		m := f.memcached()
		falsify(m)
		f.must(f.Status().Update(t.Context(), m))
		n := f.writes()
		result, err := f.reconcileNow()
		f.must(err)
		if limited := i >= 5; (f.writes() == n) != limited || (result.RequeueAfter == 10*time.Second) != limited {
			t.Errorf("correction number %d: %d writes, then %+v", i+1, f.writes()-n, result)
		}
	}
	f.reconcile()
	if got := f.memcached().Status; got.ReadyReplicas != 3 ||
		!got.Conditions[0].LastTransitionTime.Equal(&before.Conditions[0].LastTransitionTime) {
		t.Errorf("the status is %+v, want %+v", got, before)
	}
	f.records()
}

func TestAFalsifiedStatusIsNoticedByAWatch(t *testing.T) {
	l := newLoop(t)
	l.start(cfg, []string{l.here}, twoWorkers)
	m := l.create(l.here)
	l.complete(m, 3)
	l.Eventually(func() error {
		l.Expect(l.admin.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(gomega.Succeed())
		falsify(m)
		return l.admin.Status().Update(t.Context(), m)
	}).Should(gomega.Succeed())
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))
}

// The API server refuses an event with a note of more than 1,024 bytes.
func TestAnEventWithALongMessageIsRecorded(t *testing.T) {
	l := newLoop(t)
	admissiontest.Validate(t, l.admin, l.here, "apps", "deployments", `false`, `"`+strings.Repeat("no ", 600)+`"`)
	l.start(cfg, []string{l.here}, twoWorkers)
	m := l.create(l.here)
	l.Eventually(l.is(m, conditions.Degraded)).Should(gomega.Equal("True ChildRejected"))
	l.Eventually(func() (notes []int) {
		var events eventsv1.EventList
		l.Expect(l.admin.List(t.Context(), &events, client.InNamespace(l.here))).To(gomega.Succeed())
		for _, e := range events.Items {
			if e.Reason == conditions.ReasonChildRejected {
				notes = append(notes, len(e.Note))
			}
		}
		return notes
	}).Should(gomega.HaveExactElements(gomega.BeNumerically("~", 1024, 4)))
	l.Expect(l.admin.Get(t.Context(), client.ObjectKeyFromObject(m), &corev1.Service{})).To(gomega.Succeed(),
		"the other child is made")
}

func TestAChildHeldByAFinalizerIsReportedOnce(t *testing.T) {
	f := newFixture(t)
	f.complete()
	edit(f, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = []string{"example.com/keep"} })
	f.must(f.Delete(t.Context(), f.service()))
	for range 3 {
		f.reconcile()
	}
	f.is(conditions.Degraded, "True WaitingForDeletion")
	f.records("Warning WaitingForDeletion")
	edit(f, &corev1.Service{}, func(s *corev1.Service) { s.Finalizers = nil })
	f.reconcile()
	f.is(conditions.Degraded, "False AsExpected")
	f.records("Normal Recovered", "Normal Complete")
}
