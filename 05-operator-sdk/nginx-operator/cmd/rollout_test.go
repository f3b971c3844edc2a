package main

import (
	"testing"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// TestARolloutThatDoesNotEndIsReported lets a quota refuse new pods, and then pauses the Deployment. The Deployment
// reports both at once, and its deadline ten minutes later.
func TestARolloutThatDoesNotEndIsReported(t *testing.T) {
	w := newFixture(t)
	p := launch(t, w.operator("rollout"))
	p.EventuallyPrints("Starting workers", "30s")
	site := manifest[proxyv1alpha1.Nginx](t, "samples/proxy_v1alpha1_nginx.yaml")
	site.Namespace, site.Name, site.Spec.Count = "default", "site", 1
	w.must(w.Create(t.Context(), &site))
	w.complete("site")

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one-pod"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	w.must(w.Create(t.Context(), quota))
	w.Eventually(func() (int64, error) {
		err := w.Get(t.Context(), client.ObjectKeyFromObject(quota), quota)
		return quota.Status.Used.Pods().Value(), err
	}).Should(gomega.BeEquivalentTo(1))
	w.merge(&site, `{"spec":{"image":"nginx:1.28-alpine"}}`)
	w.degraded(owned.ReasonReplicaFailure, "exceeded quota: one-pod")
	w.must(w.Delete(t.Context(), quota))
	w.recovered()

	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	w.merge(deployment, `{"spec":{"paused":true}}`)
	w.merge(&site, `{"spec":{"image":"nginx:1.29-alpine"}}`)
	w.degraded(owned.ReasonDeploymentPaused, "kubectl rollout resume deployment site")
	w.merge(deployment, `{"spec":{"paused":null}}`)
	w.recovered()
	w.remove("site")
}

func (w *fixture) merge(obj client.Object, patch string) {
	w.t.Helper()
	w.must(w.Patch(w.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// condition returns a condition of the Nginx named site, or an empty condition.
func (w *fixture) condition(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(w.nginx("site").Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// degraded waits until the Nginx is Degraded for a reason, with a message that has the text. The old pod serves.
func (w *fixture) degraded(reason, text string) {
	w.t.Helper()
	w.Eventually(func() string { return w.condition(owned.Degraded).Reason }, "10s").Should(gomega.Equal(reason))
	w.Expect(w.condition(owned.Degraded).Message).To(gomega.ContainSubstring(text))
	w.Expect(w.condition(owned.Progressing).Reason).To(gomega.Equal(reason))
	w.Expect(w.condition(owned.Available).Status).To(gomega.Equal(metav1.ConditionTrue))
}

func (w *fixture) recovered() {
	w.t.Helper()
	w.complete("site")
	w.Expect(w.condition(owned.Degraded).Status).To(gomega.Equal(metav1.ConditionFalse))
}
