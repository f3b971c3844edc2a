package controller

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/owned"
)

// In these tests a manager runs the loop: they are about the events that enqueue, the number of writes, and the
// requests.

// The original looked at pods only when an event of another object enqueued the Nginx.
func TestNoWatchOnPodsDoesNotComeBack(t *testing.T) {
	t.Parallel()
	l := newLoop(t).start()
	l.ask(site)
	set := l.set(site)
	const soon = "10s"
	a, b := l.pod(newPod(set, "site-1-a"), corev1.PodRunning), l.pod(newPod(set, "site-1-b"), corev1.PodRunning)
	l.Eventually(l.listed(site), soon).Should(gomega.Equal([]string{"site-1-a", "site-1-b"}))
	l.must(l.Delete(t.Context(), a))
	l.Eventually(l.listed(site), soon).Should(gomega.Equal([]string{"site-1-b"}), "a deleted pod")
	l.pod(newPod(set, "site-1-c"), corev1.PodRunning)
	l.Eventually(l.listed(site), soon).Should(gomega.Equal([]string{"site-1-b", "site-1-c"}), "the one in its place")
	l.phase(b, corev1.PodFailed)
	l.Eventually(l.listed(site), soon).Should(gomega.Equal([]string{"site-1-c"}), "one that its node evicted")
	edit(l.cluster, "site-1-c", &corev1.Pod{}, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/held"} })
	l.must(l.Delete(t.Context(), get(l.cluster, "site-1-c", &corev1.Pod{})))
	l.Eventually(l.listed(site), soon).Should(gomega.BeEmpty(), "one that is still there, but going")
	edit(l.cluster, "site-1-c", &corev1.Pod{}, func(p *corev1.Pod) { p.Finalizers = nil })
}

// For a thousand changes, as fast as possible, the rate limiter bounds the number of status writes.
func TestAThousandPodChangesCostFewStatusWrites(t *testing.T) {
	const groups, pods, rounds = 8, 5, 25 // 8 * 5 * 25 = 1000
	l := newLoop(t).start()
	l.ask(site)
	set := l.set(site)
	var want []string
	for g := range groups {
		for p := range pods {
			l.must(l.Create(t.Context(), newPod(set, fmt.Sprintf("site-1-%d-%d", g, p))))
			if p%2 == 0 {
				want = append(want, fmt.Sprintf("site-1-%d-%d", g, p))
			}
		}
	}
	l.quiet()
	writes := func() int { return l.writes("update nginxes/status") }
	before, begin := writes(), time.Now()
	var all sync.WaitGroup
	report := func(g, p int, phase corev1.PodPhase, message string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("site-1-%d-%d", g, p)}}
		patch := fmt.Appendf(nil, `{"status":{"phase":%q,"message":%q}}`, phase, message)
		if err := l.Status().Patch(t.Context(), pod, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Error(err)
		}
	}
	for g := range groups {
		all.Go(func() {
			for round := range rounds {
				for p := range pods {
					phase := corev1.PodRunning
					if round%2 == 1 || round == rounds-1 && p%2 == 1 {
						phase = corev1.PodFailed
					}
					report(g, p, phase, fmt.Sprint("round ", round))
				}
			}
		})
	}
	all.Wait()
	changed := time.Since(begin)
	l.Eventually(l.listed(site)).Should(gomega.Equal(want), "the final list")
	reported := time.Since(begin)
	l.quiet()
	cost := writes() - before
	t.Logf("%d pod changes in %.1f s cost %d writes of status; the list was current %.1f s after the last",
		groups*pods*rounds, changed.Seconds(), cost, (reported - changed).Seconds())
	if most := 2 + int(reported/(2*time.Second)); cost > most { // the contract, independent of pace.go
		t.Errorf("%d writes in %s, want at most %d", cost, reported, most)
	}
	if reported-changed > 30*time.Second {
		t.Errorf("the list was current %s after the last change", reported-changed)
	}
	l.Expect(l.listed(site)()).To(gomega.Equal(want))
	for g := range groups {
		report(g, 0, corev1.PodRunning, "the list does not show this")
	}
	l.quiet()
	l.Expect(writes()-before).To(gomega.Equal(cost), "a current status is not written again")
}

func TestOneWatchForEachKindAndNothingElse(t *testing.T) {
	t.Parallel()
	l := newLoop(t).start()
	l.ask(site)
	l.Eventually(l.condition(site, owned.Degraded)).Should(gomega.Equal(well))
	l.quiet()
	watches := map[string]int{}
	for what, n := range l.requests() {
		if strings.HasPrefix(what, "watch ") || strings.HasPrefix(what, "list ") {
			watches[what] = n
		}
	}
	want := map[string]int{"watch nginxes": 1, "watch configmaps": 1, "watch deployments": 1, "watch services": 1,
		"watch pods": 1, "watch replicasets": 1}
	if diff := cmp.Diff(want, watches); diff != "" {
		t.Error(diff)
	}
}

// unmanagedObject returns an object that has the name of a child, and no owner.
func unmanagedObject(kind, namespace string) client.Object {
	name := metav1.ObjectMeta{Namespace: namespace, Name: site}
	if kind == "Service" {
		return &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}}
	}
	labels := map[string]string{"app": "theirs"}
	return &appsv1.Deployment{ObjectMeta: name,
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs"}}}}}}
}

func TestAnUnmanagedObjectIsNotChangedAndNoticedByAWatch(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "Service"} {
		t.Run(kind, func(t *testing.T) {
			l := newLoop(t)
			unmanaged := unmanagedObject(kind, l.namespace)
			l.must(l.Create(t.Context(), unmanaged))
			l.start() // the caches contain the object before the first reconcile
			l.ask(site)
			l.Eventually(l.condition(site, owned.Degraded)).Should(gomega.Equal("True ResourceConflict"))
			l.Expect(l.writes("patch")).To(gomega.BeZero(), "it is looked at before anything is written")
			live := unmanaged.DeepCopyObject().(client.Object)
			l.Expect(get(l.cluster, site, live).GetResourceVersion()).
				To(gomega.Equal(unmanaged.GetResourceVersion()), "it is not touched")
			l.Expect(l.listed(site)()).To(gomega.BeEmpty())
			l.must(l.Delete(t.Context(), live))
			l.Eventually(l.condition(site, owned.Degraded), "10s").Should(gomega.Equal(well))
			l.Expect(metav1.IsControlledBy(get(l.cluster, site, live), l.nginx(site))).To(gomega.BeTrue())

			// A user gives a child to another controller: the operator no longer owns it.
			edit(l.cluster, site, live, func(o client.Object) {
				o.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}})
			})
			l.Eventually(l.condition(site, owned.Degraded), "10s").Should(gomega.Equal("True ResourceConflict"))
		})
	}
}

func TestAnUnmanagedObjectStartsNoReconcile(t *testing.T) {
	t.Parallel()
	l := newLoop(t).start()
	l.ask(site)
	l.deployed(site)
	l.quiet()
	before := l.reconciles.Load()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelName: "nginx", labelInstance: "shop"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs"}}}} // the labels of a well-known chart
	for _, o := range []client.Object{unmanagedObject("Deployment", l.namespace), unmanagedObject("Service", l.namespace), pod} {
		o.SetNamespace(l.namespace)
		o.SetName("shop")
		l.must(l.Create(t.Context(), o))
	}
	l.phase(pod, corev1.PodRunning)
	l.Consistently(l.reconciles.Load, "1s").Should(gomega.Equal(before))
}

func TestMissingContentHealsByAWatchAndNotByAsking(t *testing.T) {
	t.Parallel()
	l := newLoop(t).start()
	l.ask(site, serving("page"))
	l.ask("other", serving("page"))
	l.ask("plain")
	for _, name := range []string{site, "other"} {
		l.Eventually(l.condition(name, owned.Degraded)).Should(gomega.Equal("True ContentNotFound"))
	}
	l.quiet()
	before := l.requests()
	l.must(l.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "unrelated"}}))
	l.Consistently(l.requests).Should(gomega.Equal(before), "it is tried again, though nothing changed")
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "page"},
		Data: map[string]string{"index.html": "one"}}
	l.must(l.Create(t.Context(), page))
	for _, name := range []string{site, "other"} {
		l.Eventually(l.condition(name, owned.Degraded), "10s").Should(gomega.Equal(well))
	}
	hash := func(name string) func() string {
		return func() string {
			return get(l.cluster, name, &appsv1.Deployment{}).Spec.Template.Annotations[contentHash]
		}
	}
	one := hash(site)()
	edit(l.cluster, "page", page, func(c *corev1.ConfigMap) { c.Data["index.html"] = "two" })
	for _, name := range []string{site, "other"} {
		l.Eventually(hash(name), "10s").ShouldNot(gomega.Equal(one), "a changed ConfigMap reaches the pods")
	}
	l.Expect(hash("plain")()).To(gomega.BeEmpty())
	l.must(l.Delete(t.Context(), page))
	l.Eventually(l.condition(site, owned.Degraded), "10s").Should(gomega.Equal("True ContentNotFound"))
}
