package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// suiteNamespace is the namespace that the suite's manager serves.
const suiteNamespace = "suite"

var _ = Describe("A Memcached", Ordered, func() {
	key := types.NamespacedName{Namespace: suiteNamespace, Name: "memcached-sample"}
	memcached, pods, service := &cachev1alpha1.Memcached{}, &appsv1.Deployment{}, &corev1.Service{}

	// condition reads one of the three conditions from the API server.
	condition := func(g Gomega, kind string) metav1.Condition {
		g.Expect(k8sClient.Get(ctx, key, memcached)).To(Succeed())
		c := meta.FindStatusCondition(memcached.Status.Conditions, kind)
		g.Expect(c).NotTo(BeNil())
		return *c
	}

	BeforeAll(func() {
		Expect(k8sClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: suiteNamespace}})).To(Succeed())
		Expect(k8sClient.Create(ctx, &cachev1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       cachev1alpha1.MemcachedSpec{Size: 3},
		})).To(Succeed())
	})

	It("gets its own Deployment and Service", func() {
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, pods)).To(Succeed())
			g.Expect(k8sClient.Get(ctx, key, service)).To(Succeed())
		}).Should(Succeed())
		Expect(k8sClient.Get(ctx, key, memcached)).To(Succeed())
		Expect(metav1.IsControlledBy(pods, memcached)).To(BeTrue())
		Expect(metav1.IsControlledBy(service, memcached)).To(BeTrue())
		Expect(*pods.Spec.Replicas).To(Equal(int32(3)))
		Expect(pods.Spec.Template.Spec.Containers[0].Image).To(Equal("memcached:1.6-alpine"))
		Expect(service.Spec.Ports[0].Port).To(Equal(int32(11211)))
	})

	It("is available when pods are ready", func() {
		By("playing the Deployment controller, which envtest lacks")
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, pods)).To(Succeed())
			pods.Status = appsv1.DeploymentStatus{ObservedGeneration: pods.Generation, Replicas: 3, UpdatedReplicas: 3,
				ReadyReplicas: 3, AvailableReplicas: 3}
			g.Expect(k8sClient.Status().Update(ctx, pods)).To(Succeed())
		}).Should(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(condition(g, owned.Available).Status).To(Equal(metav1.ConditionTrue))
			g.Expect(condition(g, owned.Progressing).Reason).To(Equal(owned.ReasonComplete))
			g.Expect(memcached.Status.ReadyReplicas).To(Equal(int32(3)))
		}).Should(Succeed())
	})
})
