package controller

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/conditions"
	"github.com/example/memcached-operator/internal/testenv"
)

// TestTheWholeLifeOfTheSample runs on a local cluster, where Deployments roll out and the garbage collector
// works. It is skipped in a copy of this folder outside the workshop.
func TestTheWholeLifeOfTheSample(t *testing.T) {
	local, err := testenv.StartLocal(filepath.Join("..", "..", "config", "crd", "bases",
		"cache.example.com_memcacheds.yaml"))
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer local.Stop()
	envtest := cfg
	cfg = local.Config
	defer func() { cfg = envtest }()
	l := newLoop(t)
	l.SetDefaultEventuallyTimeout(60 * time.Second)
	l.start(local.Config, nil, twoWorkers)
	defer l.stop()

	began := time.Now()
	m := l.create(l.here)
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))
	l.Expect(l.is(m, conditions.Available)()).To(gomega.Equal("True PodsReady"))
	l.Expect(l.readyPods()).To(gomega.HaveLen(3))
	took, children, statuses := time.Since(began), l.writes("PATCH"), l.writes("PUT memcacheds/status")
	l.Expect(children).To(gomega.Equal(2))
	l.Expect(statuses).To(gomega.BeNumerically("<=", 2+int(took/(4*time.Second))), "a rollout that stalls is reported")
	t.Logf("3 pods ready after %s, with %d child writes and %d status writes",
		took.Round(time.Millisecond), children, statuses)

	scale := &autoscalingv1.Scale{}
	l.Expect(l.admin.SubResource("scale").Get(t.Context(), m, scale)).To(gomega.Succeed())
	l.Expect(scale.Status.Replicas).To(gomega.Equal(int32(3)))
	scale.Spec.Replicas = 6
	err = l.admin.SubResource("scale").Update(t.Context(), m, client.WithSubResourceBody(scale))
	l.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "the schema holds for scale too: %v", err)
	scale.Spec.Replicas = 5
	l.Expect(l.admin.SubResource("scale").Update(t.Context(), m, client.WithSubResourceBody(scale))).To(gomega.Succeed())
	l.Eventually(l.readyPods).Should(gomega.HaveLen(5))
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))

	before := l.readyPods()
	l.Expect(l.admin.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(gomega.Succeed())
	m.Spec.Image = "memcached:1.6.39-alpine"
	l.Expect(l.admin.Update(t.Context(), m)).To(gomega.Succeed())
	l.Eventually(func() []string {
		return slices.DeleteFunc(l.readyPods(), func(name string) bool { return slices.Contains(before, name) })
	}).Should(gomega.HaveLen(5), "an image rolls the pods")
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))

	l.reportsRefusedPods(m)
	l.reportsAPause(m)

	l.Expect(l.admin.Delete(t.Context(), m)).To(gomega.Succeed())
	l.Eventually(l.left, "60s").Should(gomega.BeEmpty(), "the garbage collector removes what it owned")
	for what := range l.requests() {
		if strings.HasPrefix(what, "DELETE ") {
			t.Errorf("the operator sent %s", what)
		}
	}
	l.Expect(l.refused()).To(gomega.BeEmpty())
}

// reportsRefusedPods lets a quota refuse new pods. The Deployment reports the refusal at once, and its deadline ten
// minutes later.
func (l *loop) reportsRefusedPods(m *cachev1alpha1.Memcached) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: "one-pod"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	l.Expect(l.admin.Create(l.t.Context(), quota)).To(gomega.Succeed())
	l.Eventually(func() (int64, error) {
		err := l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(quota), quota)
		return quota.Status.Used.Pods().Value(), err
	}).Should(gomega.BeEquivalentTo(5))
	l.merge(m, `{"spec":{"image":"memcached:1.6.38-alpine"}}`)
	l.Eventually(l.is(m, conditions.Degraded), "10s").Should(gomega.Equal("True ReplicaFailure"))
	l.Expect(l.is(m, conditions.Progressing)()).To(gomega.Equal("False ReplicaFailure"))
	l.Expect(l.is(m, conditions.Available)()).To(gomega.Equal("True PodsReady"))
	l.Expect(l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(m), m)).To(gomega.Succeed())
	l.Expect(meta.FindStatusCondition(m.Status.Conditions, conditions.Degraded).Message).To(gomega.And(
		gomega.ContainSubstring("FailedCreate"), gomega.ContainSubstring("exceeded quota: one-pod")))
	l.Expect(l.admin.Delete(l.t.Context(), quota)).To(gomega.Succeed())
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))
	l.Expect(l.is(m, conditions.Degraded)()).To(gomega.Equal(well))
}

// reportsAPause pauses the rollouts of the Deployment. The status reports the pause only when a rollout waits.
func (l *loop) reportsAPause(m *cachev1alpha1.Memcached) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	l.merge(deployment, `{"spec":{"paused":true}}`)
	l.quiet()
	l.Expect(l.is(m, conditions.Degraded)()).To(gomega.Equal(well))
	l.merge(m, `{"spec":{"image":"memcached:1.6.39-alpine"}}`)
	l.Eventually(l.is(m, conditions.Degraded), "10s").Should(gomega.Equal("True DeploymentPaused"))
	l.Expect(l.is(m, conditions.Available)()).To(gomega.Equal("True PodsReady"))
	l.merge(deployment, `{"spec":{"paused":null}}`)
	l.Eventually(l.is(m, conditions.Progressing)).Should(gomega.Equal("False Complete"))
	l.Expect(l.is(m, conditions.Degraded)()).To(gomega.Equal(well))
}

// readyPods returns the names of the ready pods in the namespace of the test.
func (l *loop) readyPods() (names []string) {
	var pods corev1.PodList
	l.Expect(l.admin.List(context.Background(), &pods, client.InNamespace(l.here))).To(gomega.Succeed())
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero() {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

// left returns the names of the remaining objects of the Memcached.
func (l *loop) left() (names []string) {
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{}} {
		l.Expect(l.admin.List(context.Background(), list, client.InNamespace(l.here))).To(gomega.Succeed())
		l.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, o.(client.Object).GetName())
			return nil
		})).To(gomega.Succeed())
	}
	return names
}
